"""The record: conversations, messages, runs and everything a run did.

PostgreSQL is the truth. What must never be false is a constraint here, not a check in code. The only way from a
request to a row is `visible_to(user)`.
"""

import uuid
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.models import User


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def visible_to(self, user: User) -> Self:
        """A conversation belongs to one person; nobody else finds it."""
        return self.filter(user_id=user.pk) if user.is_active else self.none()


class Conversation(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations")
    agent = models.ForeignKey("tools_admin.Agent", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    title = models.CharField(max_length=200, blank=True)
    pinned = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        indexes = [
            # the list of a user's conversations, newest first
            models.Index(fields=["user", "archived", "-updated_at"], name="conversation_list"),
        ]

    def __str__(self) -> str:
        return self.title or "New conversation"


class MessageQuerySet(models.QuerySet["Message"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(conversation__user_id=user.pk) if user.is_active else self.none()


class Message(models.Model):
    """Append-only. `parent` makes the tree in which edits and regenerations are siblings."""

    class Role(models.TextChoices):
        USER = "user", "You"
        ASSISTANT = "assistant", "Assistant"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="children")
    run = models.ForeignKey("Run", on_delete=models.SET_NULL, null=True, blank=True, related_name="messages")
    role = models.CharField(max_length=10, choices=Role)
    content = models.TextField()
    partial = models.BooleanField(default=False, help_text="The answer was stopped or broke off.")
    injected = models.BooleanField(default=False, help_text="Sent while a run was going on.")
    recalled = models.BooleanField(default=False)
    pinned = models.BooleanField(default=False, help_text="Stays in the agent's context.")
    client_id = models.CharField(max_length=64, blank=True, help_text="The sender's own id: one message per id.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [models.Index(fields=["conversation", "created_at"], name="message_branch")]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "client_id"], condition=~Q(client_id=""), name="message_once_per_client_id"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_role_display()}: {self.content[:60]}"


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, user: User) -> Self:
        """One's own runs: to read, watch, stop."""
        return self.filter(user_id=user.pk) if user.is_active else self.none()

    def inspectable_by(self, user: User) -> Self:
        """Runs whose trace the user may read: one's own, all with `view_all_runs` (each such look is recorded)."""
        if user.is_active and user.has_perm("conversations.view_all_runs"):
            return self.all()
        return self.visible_to(user)

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
    message = models.ForeignKey(
        Message, on_delete=models.CASCADE, related_name="+", help_text="The user's message that this run answers."
    )
    mode = models.CharField(max_length=20, default="react")
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    reason = models.CharField(max_length=60, blank=True, help_text="Machine-readable: why it ended or waits.")
    error = models.CharField(max_length=500, blank=True, help_text="What went wrong, for people.")
    model = models.JSONField(default=dict, help_text="Snapshot of the model chosen at the start, and why.")
    answer = models.TextField(blank=True)
    iterations = models.PositiveIntegerField(default=0)
    usage = models.JSONField(default=dict)
    cost = models.BigIntegerField(default=0, help_text="Micro-units of the currency.")
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
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="call_once_per_position")]

    def __str__(self) -> str:
        return self.key


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


class Interrupt(models.Model):
    """A message sent while a run was going on. Never lost: read by the run, handed over to the next turn, or given
    back to its writer."""

    class State(models.TextChoices):
        QUEUED = "queued", "Not yet read"
        READ = "read", "On its way to the model"
        ADMITTED = "admitted", "Read by the run"
        RECALLED = "recalled", "Taken back"
        HANDED_OVER = "handed_over", "Became the next turn"

    UNSEEN = (State.QUEUED, State.READ)  # no reply of a model that knew it is on record

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="interrupts")
    message = models.OneToOneField(Message, on_delete=models.CASCADE, related_name="interrupt")
    state = models.CharField(max_length=12, choices=State, default=State.QUEUED)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.message_id}: {self.state}"


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def visible_to(self, user: User) -> Self:
        """Whoever may decide: the person whose run asks."""
        return self.filter(run__user_id=user.pk) if user.is_active else self.none()


class Approval(models.Model):
    """A call that needs a person's word, bound to the exact arguments and used up by one call."""

    class State(models.TextChoices):
        PENDING = "pending", "Waits for a decision"
        APPROVED = "approved", "Approved"
        REJECTED = "rejected", "Rejected"
        EXPIRED = "expired", "Expired"
        CONSUMED = "consumed", "Approved and used"
        SUPERSEDED = "superseded", "Withdrawn"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="approvals")
    key = models.CharField(max_length=200, help_text="The call's position in the run.")
    tool_name = models.CharField(max_length=64)
    arguments = models.JSONField(help_text="As the model proposed them.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of name and proposed arguments.")
    edited = models.JSONField(null=True, help_text="As the person changed them.")
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    comment = models.CharField(max_length=1_000, blank=True)
    expires_at = models.DateTimeField()
    decided_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        indexes = [
            # the sweeper's question
            models.Index(fields=["expires_at"], condition=Q(state="pending"), name="approval_expiry"),
        ]
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="approval_once_per_position")]

    def __str__(self) -> str:
        return f"{self.tool_name}: {self.get_state_display()}"


class Inspection(models.Model):
    """A look at somebody else's run: allowed to holders of `view_all_runs`, and recorded."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="inspections")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at"]

    def __str__(self) -> str:
        return f"{self.user} looked at {self.run_id}"
