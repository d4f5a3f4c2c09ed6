"""Who may see a row: the only way from a request to a row is `visible_to(user)`."""

from typing import TYPE_CHECKING, Self

from django.db import models

if TYPE_CHECKING:
    from accounts.models import User


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def visible_to(self, user: "User") -> Self:
        """A conversation belongs to one person; nobody else finds it."""
        return self.filter(user_id=user.pk) if user.is_active else self.none()


class MessageQuerySet(models.QuerySet["Message"]):
    def visible_to(self, user: "User") -> Self:
        return self.filter(conversation__user_id=user.pk) if user.is_active else self.none()


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, user: "User") -> Self:
        """One's own runs: to read, watch, stop."""
        return self.filter(user_id=user.pk) if user.is_active else self.none()

    def inspectable_by(self, user: "User") -> Self:
        """Runs whose trace the user may read: one's own, all with `view_all_runs` (each such look is recorded)."""
        if user.is_active and user.has_perm("conversations.view_all_runs"):
            return self.all()
        return self.visible_to(user)

    def active(self) -> Self:
        return self.filter(status__in=["queued", "running", "waiting"])


class CallQuerySet(models.QuerySet["Call"]):
    def visible_to(self, user: "User") -> Self:
        return self.filter(run__user_id=user.pk) if user.is_active else self.none()
