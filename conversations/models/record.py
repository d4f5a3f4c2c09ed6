"""What a run is and everything it did: calls and events."""

import uuid
from typing import Self

from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.roles import APPROVE
from conversations.models.talk import Conversation, Message


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, user: User) -> Self:
        """One's own runs: to read, watch, stop."""
        return self.filter(user_id=user.pk) if user.is_active else self.none()

    def inspectable_by(self, user: User) -> Self:
        """Runs whose trace the user may read: one's own, all with `view_all_runs` (each such look is recorded)."""
        if user.is_active and user.has_perm("conversations.view_all_runs"):
            return self.all()
        return self.visible_to(user)

    def settleable_by(self, user: User) -> Self:
        """Runs whose calls of unknown outcome the user may settle: one's own, all with `approve`."""
        return self.all() if user.is_active and user.has_perm(APPROVE) else self.visible_to(user)

    def active(self) -> Self:
        return self.filter(status__in=["queued", "running", "waiting"])


class Run(models.Model):
    """One turn of an agent. Claimed by one worker at a time: `epoch` fences all its writes."""

    class Status(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        WAITING = "waiting", "Waiting for a person"
        COMPLETED = "completed", "Completed"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Stopped"

    ACTIVE = (Status.QUEUED, Status.RUNNING, Status.WAITING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="runs")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="runs")
    agent = models.ForeignKey("tools_admin.Agent", on_delete=models.SET_NULL, null=True, related_name="+")
    agent_version = models.ForeignKey(
        "tools_admin.AgentVersion",
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="What the agent was when a worker first took the run.",
    )
    message = models.ForeignKey(
        Message, on_delete=models.CASCADE, related_name="+", help_text="The user's message that this run answers."
    )
    mode = models.CharField(max_length=20, default="react")
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    reason = models.CharField(max_length=60, blank=True, help_text="Machine-readable: why it ended or waits.")
    error = models.CharField(max_length=500, blank=True, help_text="What went wrong, for people.")
    model = models.JSONField(default=dict, help_text="Snapshot of the model chosen at the start, and why.")
    route = models.JSONField(default=dict, help_text="How it was worked on, and why: mode, reason, parameters.")
    answer = models.TextField(blank=True)
    iterations = models.PositiveIntegerField(default=0)
    usage = models.JSONField(default=dict)
    api_key = models.ForeignKey(
        "accounts.ApiKey", on_delete=models.SET_NULL, null=True, related_name="+", help_text="By which it was started."
    )
    # Money in micro-units. What is settled, what calls on their way may take, and what the budgets have allotted
    # (see allotments.py); only the worker that holds the run changes them.
    cost = models.BigIntegerField(default=0, help_text="Micro-units of the currency.")
    tokens = models.BigIntegerField(default=0)
    reserved_cost = models.BigIntegerField(default=0)
    reserved_tokens = models.BigIntegerField(default=0)
    allotted_cost = models.BigIntegerField(null=True)
    allotted_tokens = models.BigIntegerField(null=True)
    purse_until = models.DateTimeField(null=True, help_text="Until then the allotments are good.")
    attempt = models.PositiveIntegerField(default=0, help_text="How often an answer began to stream.")
    journal_version = models.PositiveSmallIntegerField(default=1)

    epoch = models.PositiveIntegerField(default=0, help_text="Counts claims; writes of an older claim affect no row.")
    lease_owner = models.CharField(max_length=100, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    crashes = models.PositiveSmallIntegerField(default=0, help_text="Claims in a row that ended by lease expiry.")
    next_seq = models.PositiveIntegerField(default=1)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    enqueued_at = models.DateTimeField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True, help_text="Queued until then: its model did not answer.")
    postponed = models.PositiveSmallIntegerField(default=0, help_text="How often it was put back for that reason.")
    deadline = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        permissions = [("view_all_runs", "Can look at the runs of all users")]
        indexes = [
            # the ledger of a user, newest first
            models.Index(fields=["user", "-created_at"], name="run_ledger"),
            # how many runs of a user are going on, and which is next
            models.Index(
                fields=["user", "status"], condition=Q(status__in=["queued", "running", "waiting"]), name="run_turn"
            ),
            # the sweeper's question, every few seconds
            models.Index(
                fields=["lease_expires_at"], condition=Q(status__in=["queued", "running", "waiting"]), name="run_sweep"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(status__in=["queued", "running", "waiting"]),
                name="one_active_run_per_conversation",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["queued", "running", "waiting"], ended_at=None)
                | Q(status__in=["completed", "failed", "cancelled"], ended_at__isnull=False),
                name="run_end_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"Run {self.id}"

    @property
    def is_active(self) -> bool:
        return self.status in self.ACTIVE


class CallQuerySet(models.QuerySet["Call"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(run__user_id=user.pk) if user.is_active else self.none()

    def in_doubt(self) -> Self:
        """Those of which nobody saw the end, while their run waits for a person to say what became of them."""
        return self.filter(state=Call.State.UNKNOWN, run__status=Run.Status.WAITING)


class Call(models.Model):
    """One position of a run's journal: a model call, a tool call, a clock reading … and its result."""

    class State(models.TextChoices):
        STARTED = "started", "Started"
        SUCCEEDED = "succeeded", "Succeeded"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Stopped"
        UNKNOWN = "unknown", "Outcome unknown"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="calls")
    key = models.CharField(max_length=200, help_text="The position in the run, such as react/3/tool/0.")
    kind = models.CharField(max_length=20)
    request = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, blank=True, help_text="SHA-256 of a tool call's canonical arguments.")
    effect_class = models.CharField(max_length=10)
    state = models.CharField(max_length=10, choices=State)
    result = models.JSONField(null=True)
    error = models.TextField(blank=True)
    usage = models.JSONField(default=dict)
    cost = models.BigIntegerField(default=0, help_text="Micro-units of the currency.")
    epoch = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects = CallQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        indexes = [BrinIndex(fields=["started_at"], name="call_time")]  # usage of a period; costs next to nothing
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="call_once_per_position")]

    def __str__(self) -> str:
        return self.key


class Doubt(Call):
    """A call of which nobody saw the end, as the admin lists it."""

    class Meta:
        proxy = True
        verbose_name = _("call of unknown outcome")
        verbose_name_plural = _("calls of unknown outcome")


class RunEvent(models.Model):
    """A durable event. `seq` counts from 1 without a gap; `key` says which call it belongs to."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    channel = models.CharField(max_length=20)
    data = models.JSONField()
    key = models.CharField(max_length=220)
    at = models.DateTimeField()

    class Meta:
        ordering = ["seq"]
        constraints = [
            models.UniqueConstraint(fields=["run", "seq"], name="event_seq"),
            models.UniqueConstraint(fields=["run", "key"], name="event_once_per_key"),
            models.UniqueConstraint(fields=["run"], condition=Q(channel="done"), name="one_done_per_run"),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.channel}"
