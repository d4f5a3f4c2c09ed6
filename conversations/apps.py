from typing import Any

from django.apps import AppConfig
from django.apps import apps as registry
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class ConversationsConfig(AppConfig):
    name = "conversations"
    verbose_name = _("Record")

    def ready(self) -> None:
        # The last of our apps: when its tables are there, so are the permissions of all.
        post_migrate.connect(_seed_roles, sender=self)


def _seed_roles(apps: Any = registry, **_: Any) -> None:
    try:
        apps.get_model("conversations", "Run")
    except LookupError:
        return
    from accounts.roles import seed_roles

    seed_roles()
