"""What a key allows of the things that its user may do."""

from collections.abc import Collection

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Scope(TextChoices):
    """Stored in keys and part of the API: names stay."""

    CHAT = "chat", _("Ask agents, steer their runs and read what they answer")
    RUNS_READ = "runs:read", _("Read conversations, runs and their record, and change nothing")
    APPROVE = "approve", _("Decide on calls that wait for a person's word")
    ADMIN_READ = "admin:read", _("Look at what the account's other rights show, such as runs of all people")


READING = (Scope.CHAT, Scope.RUNS_READ)


def every_scope() -> list[str]:
    return list(Scope.values)


def scope_for(permission: str) -> Scope:
    """The scope without which a key does not use a permission of its user (`app.codename`)."""
    return Scope.APPROVE if permission == "accounts.approve" else Scope.ADMIN_READ


def covers(scopes: Collection[str] | None, wanted: Collection[str]) -> bool:
    """Whether one of the wanted scopes is held. None: no key, so no limit but the person's rights; none wanted: any
    key will do."""
    return scopes is None or not wanted or any(scope in scopes for scope in wanted)
