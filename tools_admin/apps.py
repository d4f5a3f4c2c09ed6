from typing import Any

from django.apps import AppConfig
from django.apps import apps as registry
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class ToolsAdminConfig(AppConfig):
    name = "tools_admin"
    verbose_name = _("Tools, models and agents")

    def ready(self) -> None:
        post_migrate.connect(_seed, sender=self)


def _seed(apps: Any = registry, **_: Any) -> None:
    """Fills the tables that a migration (or `flush`, which names no `apps`) left behind, if it left any."""
    try:
        apps.get_model("tools_admin", "Agent")
    except LookupError:
        return
    from tools_admin.seeding import seed, sync_environment

    seed()
    sync_environment()
