from typing import Any

from django.apps import AppConfig
from django.apps import apps as registry
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections
from django.db.models.signals import m2m_changed, post_migrate, pre_migrate
from django.utils.translation import gettext_lazy as _


class ToolsAdminConfig(AppConfig):
    name = "tools_admin"
    verbose_name = _("Tools, models and agents")

    def ready(self) -> None:
        from tools_admin.models import Agent

        pre_migrate.connect(_prepare_vectors, sender=self)
        post_migrate.connect(_seed, sender=self)
        m2m_changed.connect(_open_admin_to_editors, sender=Agent.editors.through)


def _prepare_vectors(using: str, **_: Any) -> None:
    """The type of our columns for vectors: pgvector is a part of the database that is asked for."""
    try:
        with connections[using].cursor() as cursor:
            cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
            found = cursor.fetchone()
            if found is None:
                cursor.execute("CREATE EXTENSION vector")
            elif tuple(map(int, found[0].split(".")[:2])) < (0, 8):
                raise DatabaseError(f"vector {found[0]} is installed")
    except DatabaseError as error:
        raise ImproperlyConfigured(
            "The database needs pgvector 0.8 or newer. Install it, then let a superuser run "
            f"CREATE EXTENSION vector in it. The database says: {str(error).strip()[:300]}"
        ) from None


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
