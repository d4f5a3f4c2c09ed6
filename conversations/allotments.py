"""Budgets and runs: a run draws an allotment from every budget that pays for it, and gives the rest back.

So the rows of budgets, which many runs share, are touched a few times in a run and not with every call, and what they
say is used is never less than what was spent. Each function changes rows in the caller's transaction or in one of its
own; the run's row is locked first, budgets after it in the order of their ids.

A budget's `used` counts allotments in full until they are returned. An allotment holds within one period of its
budgets: at its end, and every ten minutes at the latest, the run looks at the budgets anew.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL
from django.utils import formats, timezone
from django.utils.translation import gettext as _

from accounts.budgets import tightest
from accounts.models import Budget, User
from agentapp.database import prepared_cursor
from agentapp.engine import LimitReached
from conversations import live
from conversations.errors import LeaseLost
from conversations.models import Allotment, Call, Run
from conversations.webhooks import outbox
from tools_admin.models import AgentBudget

LOOK_AGAIN = timedelta(minutes=10)
PORTION_CALLS = 8  # calls that a plentiful allotment is good for
PORTION_SHARE = 100  # and at most this part of a budget


class Amount(NamedTuple):
    """Of both units: money in micro-units, and tokens."""

    cost: int = 0
    tokens: int = 0

    def plus(self, other: "Amount") -> "Amount":
        return Amount(self.cost + other.cost, self.tokens + other.tokens)

    def times(self, factor: int) -> "Amount":
        return Amount(self.cost * factor, self.tokens * factor)


@dataclass(frozen=True, slots=True)
class Allotted:
    """How far a run may spend in all, since its beginning; None where no budget counts that unit."""

    cost: int | None
    tokens: int | None
    until: datetime


class BudgetExhausted(LimitReached):
    """Nothing more can be drawn; the message is for the person whose run it is.

    `may_change`: other runs hold allotments of which they may soon return a part.
    """

    def __init__(self, message: str, *, may_change: bool) -> None:
        super().__init__("budget", message)
        self.may_change = may_change


# All budgets that pay for a run: its user's, the user's groups', its API key's, its agent's. Plain SQL, because every
# run begins by asking whether there are any.
PAYING = """
SELECT id FROM accounts_budget WHERE user_id = %s OR api_key_id = %s
    OR group_id IN (SELECT group_id FROM accounts_user_groups WHERE user_id = %s)
    OR id IN (SELECT budget_ptr_id FROM tools_admin_agentbudget WHERE agent_id = %s)
"""


def budgets_of(run: Run) -> QuerySet[Budget]:
    """All that pay for it."""
    return Budget.objects.filter(id__in=RawSQL(PAYING, _payers(run)))  # noqa: S611 - a literal


def unlimited(run: Run) -> Allotted | None:
    """For a run that no budget pays for; None when some do."""
    with prepared_cursor() as cursor:
        cursor.execute(f"SELECT EXISTS ({PAYING})", _payers(run))
        [some] = cursor.fetchone()
    return None if some else Allotted(None, None, timezone.now() + LOOK_AGAIN)


def _payers(run: Run) -> list[int | None]:
    return [run.user_id, run.api_key_id, run.user_id, run.agent_id]


def draw(run_id: UUID, epoch: int, spent: Amount, open_calls: Amount, need: Amount) -> Allotted:
    """Exchanges what is left of the run's allotments for new ones that cover its `open_calls` and `need`.

    `spent` is settled already. Raises BudgetExhausted, and then nothing has changed; LeaseLost.
    """
    run = Run.objects.filter(id=run_id, epoch=epoch, status=Run.Status.RUNNING).first()
    if run is None:
        raise LeaseLost
    if nobody_pays := unlimited(run):
        return nobody_pays
    now = timezone.now()
    with transaction.atomic(durable=True):
        run = Run.objects.select_for_update().filter(id=run_id, epoch=epoch, status=Run.Status.RUNNING).first()
        if run is None:
            raise LeaseLost
        budgets = _locked(budgets_of(run))
        for budget in budgets:
            budget.begin_period(now)
        _give_back(run, budgets, spent)
        allotted = {}
        for unit in Budget.Unit.values:
            paying = [budget for budget in budgets if budget.unit == unit]
            allotted[unit] = _take(run, paying, unit, spent, open_calls, need, now) if paying else None
        ends = [budget.bounds(now)[1] for budget in budgets]
        run.allotted_cost, run.allotted_tokens = allotted["cost"], allotted["tokens"]
        run.purse_until = min(*ends, now + LOOK_AGAIN)
        run.save(update_fields=["allotted_cost", "allotted_tokens", "purse_until"])
        for budget in budgets:
            _warn(budget, run)
        _save(budgets)
    return Allotted(run.allotted_cost, run.allotted_tokens, run.purse_until)


def settle_lost(run: Run, epoch: int) -> None:
    """What a worker's end left open counts as spent, and stands on record: the model may have worked for it.

    The caller holds the locked row and saves it.
    """
    if not (run.reserved_cost or run.reserved_tokens):
        return
    now = timezone.now()
    Call.objects.create(
        run=run,
        key=f"lost/{epoch}",
        kind="llm",
        request={"role": "lost", "model": run.model.get("name", "")},
        effect_class="read",
        state=Call.State.FAILED,
        error="It broke off with its worker or was stopped. What it cost is an estimate.",
        usage={"input_tokens": run.reserved_tokens, "calls": 1, "estimated": True},
        cost=run.reserved_cost,
        epoch=epoch,
        started_at=min(now, run.purse_until or now),  # in the period that paid for it
        ended_at=now,
    )
    run.cost += run.reserved_cost
    run.tokens += run.reserved_tokens
    run.reserved_cost = run.reserved_tokens = 0


def close(run: Run) -> None:
    """Returns what is left, when a run ends or waits. The caller holds the locked row and saves it."""
    settle_lost(run, run.epoch)
    if run.purse_until is None:
        return
    budgets = _locked(Budget.objects.filter(allotments__run=run, allotments__amount__gt=0))
    _give_back(run, budgets, Amount(run.cost, run.tokens))
    _save(budgets)
    run.allotted_cost = run.allotted_tokens = run.purse_until = None
    if budgets:
        transaction.on_commit(lambda: _tell_left(run.user_id))


def _tell_left(user_id: int) -> None:
    """Open pages show what is left."""
    budget = tightest(User.objects.get(pk=user_id))
    if budget is not None:
        data = {"unit": str(budget.unit), "left": budget.left, "low": budget.is_low}
        live.tell_user(user_id, ("budget", data))


def _locked(budgets: QuerySet[Budget]) -> list[Budget]:
    return list(budgets.select_for_update(of=("self",)).order_by("id"))


def _save(budgets: Iterable[Budget]) -> None:
    for budget in budgets:
        budget.save(update_fields=["used", "period_start", "warned"])


def _give_back(run: Run, budgets: Iterable[Budget], spent: Amount) -> None:
    """A period that is over takes nothing back: its sum is history."""
    known = {budget.id: budget for budget in budgets}
    for allotment in run.allotments.filter(budget__in=known, amount__gt=0):
        budget = known[allotment.budget_id]
        if allotment.period_start == budget.period_start:
            rest = _allotted(run, budget.unit) - getattr(spent, budget.unit)
            budget.used = max(0, budget.used - rest)
        allotment.amount = 0
        allotment.save(update_fields=["amount"])


def _take(
    run: Run, budgets: list[Budget], unit: str, spent: Amount, open_calls: Amount, need: Amount, now: datetime
) -> int:
    """The same amount from each of them; what the run may spend in all from now on."""
    opened, needed = getattr(open_calls, unit), getattr(need, unit)
    scarcest = min(budgets, key=lambda budget: budget.limit - budget.used)
    room = max(0, scarcest.limit - scarcest.used)
    if room < opened + needed:
        others = scarcest.allotments.filter(amount__gt=0).exclude(run=run).exists()
        raise BudgetExhausted(exhausted_text(scarcest, now), may_change=others)
    portion = min(needed * PORTION_CALLS, scarcest.limit // PORTION_SHARE)
    amount = min(room, opened + max(needed, portion))
    for budget in budgets:
        budget.used += amount
    rows = [Allotment(run=run, budget=b, amount=amount, period_start=b.period_start) for b in budgets]
    Allotment.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["run", "budget"], update_fields=["amount", "period_start"]
    )
    return int(getattr(spent, unit) + amount)


def _allotted(run: Run, unit: str) -> int:
    return int(getattr(run, f"allotted_{unit}") or 0)


def exhausted_text(budget: Budget, now: datetime) -> str:
    """What happened, and when it will be over."""
    end = budget.bounds(now)[1].astimezone(budget.zone)
    text = _(
        "The budget of %(owner)s (%(limit)s, %(period)s) does not allow another call. It begins anew on %(date)s; "
        "an administrator can raise it."
    )
    return text % {
        "owner": _owner(budget),
        "limit": budget.shown(budget.limit),
        "period": budget.get_period_display(),
        "date": formats.date_format(end, "SHORT_DATE_FORMAT"),
    }


def _owner(budget: Budget) -> str:
    agent = AgentBudget.objects.filter(pk=budget.pk).first()
    return agent.owner if agent else budget.owner


def _warn(budget: Budget, run: Run) -> None:
    """Once in a period, on the page of whoever is spending."""
    if budget.warned or not budget.limit or budget.used * 100 < budget.limit * budget.warn_percent:
        return
    budget.warned = True
    text = _("%(percent)s %% of the budget of %(owner)s are used or set aside.") % {
        "percent": min(100, budget.used * 100 // budget.limit),
        "owner": _owner(budget),
    }
    data: dict[str, Any] = {"code": "budget_low", "message": text}
    transaction.on_commit(lambda: live.tell_user(run.user_id, ("notice", data)))
    figures = {"budget": budget.pk, "owner": _owner(budget), "unit": str(budget.unit), "period": str(budget.period)}
    outbox.tell("budget.near", run.user_id, {**figures, "limit": budget.limit, "used": budget.used, "run": str(run.id)})
