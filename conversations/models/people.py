"""Where people come into a run: messages meanwhile, approvals, looks at the record."""

import uuid
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.roles import APPROVE
from conversations.models.record import Run
from conversations.models.talk import Message
from tools_admin.models import Tool


class Interrupt(models.Model):
    """A message sent while a run was going on. Never lost: read by the run, handed over to the next turn, or given
    back to its writer."""

    class State(models.TextChoices):
        QUEUED = "queued", "Not yet read"
        READ = "read", "On its way to the model"
        ADMITTED = "admitted", "Read by the run"
        RECALLED = "recalled", "Taken back"
        RETURNED = "returned", "Waits to be given back to its writer"
        HANDED_OVER = "handed_over", "Became the next turn"

    UNSEEN = (State.QUEUED, State.READ)  # no reply of a model that knew it is on record

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="interrupts")
    message = models.OneToOneField(Message, on_delete=models.CASCADE, related_name="interrupt")
    state = models.CharField(max_length=12, choices=State, default=State.QUEUED)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        indexes = [
            # a page asks for what was left over when it is opened
            models.Index(fields=["message"], condition=Q(state="returned"), name="interrupt_returned"),
        ]

    def __str__(self) -> str:
        return f"{self.message_id}: {self.state}"


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def visible_to(self, user: User) -> Self:
        """The person whose run asks, its tool's approvers, and holders of `approve` (looks at others' are recorded)."""
        if not user.is_active:
            return self.none()
        if user.has_perm(APPROVE):
            return self.all()
        guarded = Tool.objects.filter(approvers__in=user.groups.all()).values("name")
        return self.filter(Q(run__user_id=user.pk) | Q(tool_name__in=guarded))


class Approval(models.Model):
    """A call that needs a person's word, bound to the exact arguments and used up by one call."""

    class State(models.TextChoices):
        PENDING = "pending", _("Waits for a decision")
        APPROVED = "approved", _("Approved")
        REJECTED = "rejected", _("Rejected")
        EXPIRED = "expired", _("Expired")
        CONSUMED = "consumed", _("Approved and used")
        SUPERSEDED = "superseded", _("Withdrawn")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="approvals")
    key = models.CharField(max_length=200, help_text="The call's position in the run.")
    tool_name = models.CharField(max_length=64)
    arguments = models.JSONField(help_text="As the model proposed them.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of name and proposed arguments.")
    tool_digest = models.CharField(
        max_length=64, blank=True, help_text="What the tool was when a person was asked (`Tool.fingerprint`)."
    )
    edited = models.JSONField(null=True, help_text="As the person changed them.")
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    comment = models.CharField(max_length=1_000, blank=True)
    lasting = models.BooleanField(default=False, help_text="It covers further calls of the tool in this conversation.")
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


class QuestionQuerySet(models.QuerySet["Question"]):
    def visible_to(self, user: User) -> Self:
        """Whoever may answer: the person whose run asks."""
        return self.filter(run__user_id=user.pk) if user.is_active else self.none()

    def pending(self) -> Self:
        return self.filter(state=Question.State.PENDING)


class Question(models.Model):
    """What a tool wants to know of the person: the agent's own question, or one of a server it calls."""

    class State(models.TextChoices):
        PENDING = "pending", "Waits for an answer"
        ANSWERED = "answered", "Answered"
        DECLINED = "declined", "Not answered"
        EXPIRED = "expired", "Expired"
        SUPERSEDED = "superseded", "Not asked any more"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="questions")
    key = models.CharField(max_length=210, help_text="The position of the call that asks, and which question it is.")
    source = models.CharField(max_length=100, blank=True, help_text="The tool that asks; empty: the agent.")
    text = models.TextField()
    fields = models.JSONField(default=dict, help_text="JSON Schema of the answer: an object of plain fields.")
    url = models.CharField(max_length=2_000, blank=True, help_text="A page that the person is asked to visit.")
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    answer = models.JSONField(default=dict)
    expires_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = QuestionQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        indexes = [
            # the sweeper's question
            models.Index(fields=["expires_at"], condition=Q(state="pending"), name="question_expiry"),
        ]
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="question_once_per_position")]

    def __str__(self) -> str:
        return f"{self.text[:60]}: {self.get_state_display()}"


class Inspection(models.Model):
    """A look at somebody else's run: allowed to holders of `view_all_runs`, and recorded."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="inspections")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at"]

    def __str__(self) -> str:
        return f"{self.user} looked at {self.run_id}"


class Settlement(models.Model):
    """A person's word on a call of which nobody saw the end."""

    class Outcome(models.TextChoices):
        DONE = "done", _("It was done")
        NOT_DONE = "not_done", _("It was not done")
        RETRY = "retry", _("Do it now")

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="settlements")
    key = models.CharField(max_length=200, help_text="The call's position in the run.")
    tool_name = models.CharField(_("tool"), max_length=64)
    outcome = models.CharField(_("outcome"), max_length=8, choices=Outcome)
    result = models.TextField(_("result"), blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("settled call")
        verbose_name_plural = _("settled calls")
        ordering = ["-at"]

    def __str__(self) -> str:
        return f"{self.tool_name}: {self.get_outcome_display()}"
