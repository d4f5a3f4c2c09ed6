"""Comparisons of routes: what was asked for, and each attempt that was started."""

import uuid
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.roles import CONFIGURE
from tools_admin.models import LanguageModel


class ComparisonQuerySet(models.QuerySet["Comparison"]):
    def visible_to(self, user: User) -> Self:
        """Those who configure see all of them: they hold what tools found for whoever started them."""
        return self.all() if user.is_active and user.has_perm(CONFIGURE) else self.none()

    def active(self) -> Self:
        return self.filter(status__in=Comparison.ACTIVE)


class Comparison(models.Model):
    """The same tasks through several routes. Worked on by one worker at a time: `epoch` fences its writes."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        COMPLETED = "completed", _("Completed")
        FAILED = "failed", _("Failed")
        STOPPED = "stopped", _("Stopped")

    ACTIVE = (Status.QUEUED, Status.RUNNING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="+",
        help_text=_("Whose rights and budgets hold."),
    )
    name = models.CharField(_("task set"), max_length=200)
    tasks = models.JSONField(help_text=_("The task set as it was then."))
    digest = models.CharField(max_length=64, help_text=_("SHA-256 of the task set: only equal ones compare."))
    agent = models.ForeignKey(
        "tools_admin.Agent",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("agent"),
        help_text=_("Its tools, instructions and fixed workflows; of its tools those that only read."),
    )
    agent_version = models.ForeignKey(
        "tools_admin.AgentVersion", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    model = models.ForeignKey(
        LanguageModel,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("model"),
        help_text=_("The same for every route. Empty: the one that the agent would get now."),
    )
    model_name = models.CharField(_("model"), max_length=200)
    scripted = models.BooleanField(default=False)
    routes = models.JSONField(default=list)
    repeats = models.PositiveSmallIntegerField(
        _("repeats"), default=3, help_text=_("How often each task goes through each route, 1 to 20.")
    )
    faults = models.CharField(max_length=10, default="own", help_text=_("The tasks' own, none, or one for all."))
    limits = models.JSONField(default=dict, help_text=_("Of each attempt: tokens and seconds, the same everywhere."))
    payers = models.ManyToManyField("accounts.Budget", related_name="+", blank=True)
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.QUEUED)
    reason = models.CharField(max_length=300, blank=True, help_text=_("Why it ended early."))
    epoch = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    enqueued_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(_("started"), auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = ComparisonQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        verbose_name = _("comparison of routes")
        verbose_name_plural = _("comparisons of routes")
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=["queued", "running"], ended_at=None)
                | Q(status__in=["completed", "failed", "stopped"], ended_at__isnull=False),
                name="comparison_end_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} · {self.model_name}"

    @property
    def is_active(self) -> bool:
        return self.status in self.ACTIVE

    @property
    def wanted(self) -> int:
        """How many whole attempts it is made of."""
        return len(self.tasks) * len(self.routes) * self.repeats


class ComparisonAttempt(models.Model):
    """One task through one route. Started ones count, whatever became of them; the cost is what is on record of it."""

    class Outcome(models.TextChoices):
        RUNNING = "running", _("running")
        COMPLETED = "completed", _("completed")
        ACCEPTED = "accepted", _("wrongly accepted")
        DECLINED = "declined", _("said what is missing")
        FAILED = "failed", _("failed")
        BROKEN_OFF = "broken_off", _("broken off")

    class Recovery(models.TextChoices):
        RECOVERED = "recovered", _("recovered")
        KEPT_SEARCHING = "kept_searching", _("kept searching")
        GAVE_UP = "gave_up", _("gave up")

    comparison = models.ForeignKey(Comparison, on_delete=models.CASCADE, related_name="attempts")
    task = models.CharField(max_length=100)
    route = models.CharField(max_length=20)
    repeat = models.PositiveSmallIntegerField()
    outcome = models.CharField(max_length=10, choices=Outcome, default=Outcome.RUNNING)
    fault = models.CharField(max_length=10, blank=True, help_text="The fault that it met.")
    recovery = models.CharField(max_length=20, blank=True, choices=Recovery)
    model_calls = models.PositiveIntegerField(default=0)
    tool_calls = models.PositiveIntegerField(default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    reasoning_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.PositiveBigIntegerField(default=0, help_text="Micro-units of the currency.")
    judge_tokens = models.PositiveBigIntegerField(default=0, help_text="Of the model that graded, not the route's.")
    judge_cost = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0.0)
    answer = models.TextField(blank=True)
    why = models.CharField(max_length=500, blank=True, help_text="The grader's word.")
    error = models.CharField(max_length=500, blank=True)
    trace = models.JSONField(default=list)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["comparison", "task", "route", "repeat"],
                condition=~Q(outcome="broken_off"),
                name="one_whole_attempt",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task} · {self.route} · {self.repeat}"
