"""What becomes of a comparison: asked for, claimed, stopped, ended."""

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from agentapp.celery import hint
from agentapp.engine.comparison import Fault, Task, TaskSet, read_csv, read_yaml
from conversations.cleaning import clean
from conversations.comparison.money import charge, payers_of
from conversations.errors import ConversationError
from conversations.models import Comparison, ComparisonAttempt
from tools_admin import services as configuration
from tools_admin.demo import TASKS
from tools_admin.models import Agent, LanguageModel
from tools_admin.modes import Mode

STARTER = TASKS
DELEGATION = "delegation"
ROUTES = {
    **{str(mode): mode.label for mode in Mode if mode != Mode.AUTO},
    DELEGATION: _("Delegation"),
}
FAULTS = {
    "own": _("as the tasks say"),
    "none": _("none"),
    "error": _("an error at the first call of each task"),
    "timeout": _("a time-out at the first call of each task"),
    "empty": _("nothing found at the first call of each task"),
}
MOST_REPEATS = 20
LIMITS = {"tokens": 100_000, "seconds": 300}


class BadComparison(ConversationError):
    code = "bad_comparison"


def read_task_set(text: str, filename: str) -> TaskSet:
    """By the ending of the name. Raises BadTaskSet."""
    path = Path(filename)
    return read_csv(text, path.stem) if path.suffix.lower() == ".csv" else read_yaml(text)


def start_comparison(
    user: User,
    task_set: TaskSet,
    *,
    routes: Sequence[str] = tuple(ROUTES),
    repeats: int = 3,
    agent: Agent | None = None,
    model: LanguageModel | None = None,
    scripted: bool = False,
    faults: str = "own",
    limits: dict[str, int] | None = None,
) -> Comparison:
    """A queued comparison, enqueued after commit. Raises BadComparison, NoModel."""
    _check(routes, repeats, faults)
    agent = agent or configuration.agent_for(user)
    if scripted:
        _check_scripts(task_set, agent, {row.name for row in configuration.tools_for(agent, user)})
    elif model is None:
        model = configuration.choose(agent, user, configuration.Situation(tools=True)).model
    tasks = clean([_with_fault(task, faults).to_dict() for task in task_set.tasks])
    with transaction.atomic():
        comparison = Comparison.objects.create(
            user=user,
            name=clean(task_set.name),
            tasks=tasks,
            digest=hashlib.sha256(json.dumps(tasks, sort_keys=True).encode()).hexdigest(),
            agent=agent,
            agent_version=configuration.publish(agent.pk) if agent else None,
            model=None if scripted else model,
            model_name="scripted" if scripted else str(model),
            scripted=scripted,
            routes=list(dict.fromkeys(routes)),
            repeats=repeats,
            faults=faults,
            limits={**LIMITS, **(limits or {})},
            enqueued_at=timezone.now(),
        )
        comparison.payers.set(payers_of(user, agent))
        transaction.on_commit(lambda: enqueue(comparison.id))
    return comparison


def enqueue(comparison_id: UUID) -> None:
    """A hint; losing it changes nothing, the sweeper sends another one."""
    hint("conversations.tasks.run_comparison", str(comparison_id))


def request_stop(comparison: Comparison) -> None:
    """What is going on is broken off within seconds; what nobody works on ends at once."""
    with transaction.atomic():
        row = Comparison.objects.select_for_update().get(pk=comparison.pk)
        if row.status == Comparison.Status.QUEUED:
            finish(row, Comparison.Status.STOPPED)
        elif row.is_active:
            Comparison.objects.filter(pk=row.pk).update(stop_requested_at=Now())


def finish(row: Comparison, status: Comparison.Status, reason: str = "") -> None:
    """The end, on a locked row, inside the caller's transaction."""
    row.status, row.reason, row.ended_at, row.lease_expires_at = status, reason[:300], timezone.now(), None
    row.save(update_fields=["status", "reason", "ended_at", "lease_expires_at"])


def due() -> list[UUID]:
    """Those that lost their message or their worker; they count as enqueued now."""
    lost = Q(status=Comparison.Status.QUEUED, enqueued_at__lt=Now() - timedelta(seconds=settings.QUEUED_AGE_SECONDS))
    dead = Q(status=Comparison.Status.RUNNING, lease_expires_at__lt=Now())
    ids = list(Comparison.objects.filter(lost | dead).values_list("id", flat=True)[:20])
    Comparison.objects.filter(id__in=ids).update(enqueued_at=Now())
    return ids


def claim(comparison_id: UUID) -> Comparison | None:
    """Takes a comparison that nobody works on. What its last worker left unfinished broke off, and counts."""
    free = Q(status=Comparison.Status.QUEUED) | Q(status=Comparison.Status.RUNNING, lease_expires_at__lt=Now())
    with transaction.atomic():
        taken = Comparison.objects.filter(free, id=comparison_id).update(
            status=Comparison.Status.RUNNING,
            epoch=F("epoch") + 1,
            lease_expires_at=_lease(),
        )
        if not taken:
            return None
        row = Comparison.objects.select_related("user", "agent_version", "model__provider").get(id=comparison_id)
        break_off(row, "Its worker ended.")
    return row


def renew(comparison_id: UUID, epoch: int) -> tuple[bool, bool]:
    """Whether the comparison is still this worker's, and whether somebody has stopped it."""
    mine = Comparison.objects.filter(id=comparison_id, epoch=epoch, status=Comparison.Status.RUNNING)
    held = mine.update(lease_expires_at=_lease())
    return bool(held), bool(held) and mine.filter(stop_requested_at__isnull=False).exists()


def break_off(row: Comparison, why: str) -> None:
    """Started attempts that have no end get one. Inside the caller's transaction."""
    for open_one in row.attempts.filter(outcome=ComparisonAttempt.Outcome.RUNNING):
        open_one.outcome, open_one.error, open_one.ended_at = open_one.Outcome.BROKEN_OFF, why, timezone.now()
        open_one.save(update_fields=["outcome", "error", "ended_at"])
        charge(row, open_one)


def _lease() -> Any:
    return Now() + timedelta(seconds=settings.RUN_LEASE_SECONDS)


def _check(routes: Sequence[str], repeats: int, faults: str) -> None:
    if unknown := [route for route in routes if route not in ROUTES]:
        raise BadComparison(
            _("There is no route %(route)s. Routes: %(known)s."), route=unknown[0], known=", ".join(ROUTES)
        )
    if not routes:
        raise BadComparison(_("Choose at least one route."))
    if not 1 <= repeats <= MOST_REPEATS:
        raise BadComparison(_("Each task is repeated 1 to %(most)s times."), most=MOST_REPEATS)
    if faults not in FAULTS:
        raise BadComparison(
            _("There are no faults %(faults)s. Faults: %(known)s."), faults=faults, known=", ".join(FAULTS)
        )


def _check_scripts(task_set: TaskSet, agent: Agent | None, tools: Collection[str]) -> None:
    """A script that calls what is not there, or a fault that never happens, would compare nothing."""
    for task in task_set.tasks:
        if task.script is None:
            raise BadComparison(_("The task %(task)s has no script, which the scripted model needs."), task=task.id)
        if task.grader == "judge":
            text = _("The task %(task)s is graded by a model; the scripted model cannot judge.")
            raise BadComparison(text, task=task.id)
        named = [call.tool for call in task.script.calls] + ([task.fault.tool] if task.fault else [])
        if missing := [name for name in named if name and name not in tools]:
            text = _("The task %(task)s names the tool %(tool)s, which the agent %(agent)s does not have.")
            raise BadComparison(text, task=task.id, tool=missing[0], agent=str(agent or "–"))


def _with_fault(task: Task, faults: str) -> Task:
    if faults == "own":
        return task
    kinds: dict[str, Any] = {"error": Fault("error"), "timeout": Fault("timeout"), "empty": Fault("empty")}
    return replace(task, fault=kinds.get(faults))
