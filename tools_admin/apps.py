from typing import Any

from django.apps import AppConfig
from django.apps import apps as registry
from django.db.models.signals import m2m_changed, post_migrate
from django.utils.translation import gettext_lazy as _


class ToolsAdminConfig(AppConfig):
    name = "tools_admin"
    verbose_name = _("Tools, models and agents")

    def ready(self) -> None:
        from tools_admin.models import Agent

        post_migrate.connect(_seed, sender=self)
        m2m_changed.connect(_open_admin_to_editors, sender=Agent.editors.through)


def _seed(apps: Any = registry, **_: Any) -> None:
    """Fills the tables that a migration (or `flush`, which names no `apps`) left behind, if it left any."""
    try:
        apps.get_model("tools_admin", "Agent")
    except LookupError:
        return
    from tools_admin.seeding import seed, sync_environment

    seed()
    sync_environment()


def _open_admin_to_editors(action: str, **_: Any) -> None:
    """Groups that edit an agent find it in the admin, whichever page made them its editors."""
    if not action.startswith("post_"):
        return
    from django.contrib.auth.models import Group

    from accounts.roles import EDIT_AGENTS, permissions_called
    from tools_admin.models import Agent

    editors = Group.objects.filter(pk__in=Agent.editors.through.objects.values("group"))
    permissions_called([EDIT_AGENTS]).get().group_set.set(editors)
