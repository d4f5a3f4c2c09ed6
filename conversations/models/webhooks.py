"""Whom to tell what happened, and what became of each telling."""

import uuid
from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from agentapp.encryption import EncryptedTextField
from conversations.versions import etag_of


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def visible_to(self, user: User) -> Self:
        """One's own; those of the installation are seen in the admin."""
        return self.filter(user_id=user.pk) if user.is_active else self.none()


class Webhook(models.Model):
    """An address that is told of events: of its owner's runs, or without an owner of everybody's."""

    class Event(models.TextChoices):
        RUN_FINISHED = "run.finished", _("A run has ended")
        APPROVAL_NEEDED = "approval.needed", _("A call waits for a person's word")
        BUDGET_NEAR = "budget.near", _("A budget is nearly used up")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="webhooks",
        verbose_name=_("owner"),
        help_text=_("It is told of this person's runs. Empty: of everybody's."),
    )
    url = models.CharField(_("address"), max_length=1_000, help_text=_("Where events are sent, as POST with JSON."))
    secret = EncryptedTextField()
    events = models.JSONField(_("events"), default=list, help_text=_("What it is told of."))
    enabled = models.BooleanField(
        _("enabled"), default=True, help_text=_("Disabled, it is told of nothing; what is on its way waits for a day.")
    )
    private_allowed = models.BooleanField(
        _("inner network"), default=False, help_text=_("The address may lie in the inner network.")
    )
    failures = models.PositiveIntegerField(default=0, editable=False, help_text=_("Failed tries in a row."))
    created_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[WebhookQuerySet] = WebhookQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        ordering = ["created_at"]

    def __str__(self) -> str:
        return self.url

    @property
    def etag(self) -> str:
        """Of what its owner can change; failures do not count."""
        return etag_of(self.url, self.events, self.enabled)


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(webhook__user_id=user.pk) if user.is_active else self.none()


class Delivery(models.Model):
    """One event on its way to one webhook: written in the event's own transaction, so that no crash loses it."""

    class State(models.TextChoices):
        PENDING = "pending", _("On its way")
        DELIVERED = "delivered", _("Delivered")
        FAILED = "failed", _("Not delivered")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(_("event"), max_length=30)
    payload = models.JSONField()
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.PENDING)
    tries = models.PositiveSmallIntegerField(_("tries"), default=0)
    due_at = models.DateTimeField(_("next try"), null=True, help_text="While it is on its way.")
    status = models.PositiveSmallIntegerField(_("status"), null=True, help_text="Of the last answer.")
    elapsed_ms = models.PositiveIntegerField(_("duration"), null=True, help_text="Of the last try, in milliseconds.")
    answer = models.CharField(_("answer"), max_length=500, blank=True, help_text="How it began, or what went wrong.")
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects: ClassVar[DeliveryQuerySet] = DeliveryQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(state="pending"), name="delivery_due"
            ),  # the sweeper's question
            models.Index(fields=["webhook", "-created_at"], name="delivery_log"),
        ]

    def __str__(self) -> str:
        return f"{self.event}: {self.get_state_display()}"
