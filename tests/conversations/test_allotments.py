"""Allotments: many runs and one budget, several budgets and one run, periods that end, sums that can be made again."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connections, transaction
from django.utils import timezone

from accounts.models import Budget, User
from accounts.services import create_api_key
from conversations import live
from conversations.allotments import (
    Allotted,
    Amount,
    BudgetExhausted,
    close,
    draw,
    settle_lost,
    unlimited,
)
from conversations.balances import balances, rebuild
from conversations.errors import LeaseLost
from conversations.models import Call, Run
from conversations.purse import Purse
from tests.factories import make_conversation, make_message, make_run, make_user
from tools_admin.models import Agent, AgentBudget

pytestmark = pytest.mark.django_db(transaction=True)

NOTHING, NEED = Amount(), Amount(100, 1_000)


@pytest.fixture
def ada() -> User:
    return make_user("ada")


def _run(user: User, **fields: Any) -> Run:
    return make_run(make_message(make_conversation(user)), "running", epoch=1, **fields)


def _draw(run: Run, need: Amount = NEED, spent: Amount = NOTHING) -> Allotted:
    return draw(run.id, 1, spent, NOTHING, need)


def _end(run: Run, spent: Amount) -> None:
    """As the record and the end of a run do it."""
    now = timezone.now()
    usage = {"input_tokens": spent.tokens, "output_tokens": 0}
    times = {"started_at": now, "ended_at": now}
    Call.objects.create(
        run=run,
        key="a",
        kind="llm",
        effect_class="read",
        state="succeeded",
        epoch=1,
        cost=spent.cost,
        usage=usage,
        **times,
    )
    with transaction.atomic():
        run = Run.objects.select_for_update().get(id=run.id)
        run.cost, run.tokens = spent
        close(run)
        run.status, run.ended_at = "completed", now
        run.save()


def _used(budget: Budget) -> int:
    return Budget.objects.get(pk=budget.pk).used


def test_of_fifty_reservations_at_once_against_a_rest_for_ten_ten_succeed(ada: User) -> None:
    budget = Budget.objects.create(user=ada, limit=1_000)
    runs = [_run(ada) for _ in range(50)]

    def reserve(run: Run) -> bool:
        try:
            return bool(_draw(run))
        except BudgetExhausted:
            return False
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(reserve, runs)) == 10
    assert _used(budget) == 1_000


def test_a_plentiful_budget_is_asked_once_for_many_calls(ada: User) -> None:
    Budget.objects.create(user=ada, limit=1_000_000)
    assert _draw(_run(ada)).cost == 800
    assert _draw(_run(ada)).tokens is None, "no budget counts tokens"


def test_every_budget_that_pays_is_drawn_from_and_gets_its_rest_back(ada: User) -> None:
    group, agent = Group.objects.create(name="Research"), Agent.objects.create(name="Analyst")
    ada.groups.add(group)
    key, _ = create_api_key(ada, "nightly")
    budgets = [
        Budget.objects.create(user=ada, limit=100_000),
        Budget.objects.create(group=group, limit=100_000, unit="tokens", period="day"),
        Budget.objects.create(api_key=key, limit=100_000),
        AgentBudget.objects.create(agent=agent, limit=100_000),
    ]
    stranger = Budget.objects.create(user=make_user("eve"), limit=1)
    run = _run(ada, api_key=key, agent=agent)
    allotted = _draw(run)
    assert allotted.cost is not None
    assert allotted.tokens is not None
    assert [_used(budget) for budget in budgets] == [allotted.cost, allotted.tokens, allotted.cost, allotted.cost]
    _end(run, Amount(70, 300))
    assert [_used(budget) for budget in [*budgets, stranger]] == [70, 300, 70, 70, 0]
    assert all(balance.used == balance.recorded for balance in balances())


def test_the_scarcest_budget_decides_and_a_refusal_changes_nothing(ada: User) -> None:
    group = Group.objects.create(name="Research")
    ada.groups.add(group)
    plenty, scarce = Budget.objects.create(user=ada, limit=1_000_000), Budget.objects.create(group=group, limit=150)
    run = _run(ada)
    assert _draw(run).cost == 100
    with pytest.raises(BudgetExhausted, match="Research") as refused:
        _draw(run, Amount(100), spent=Amount(80))
    assert not refused.value.may_change
    assert (_used(plenty), _used(scarce)) == (100, 100)
    with pytest.raises(BudgetExhausted) as refused:
        _draw(_run(ada))
    assert refused.value.may_change, "the first run may return a part"


def test_a_run_without_budgets_looks_again_after_a_while(ada: User) -> None:
    run = _run(ada)
    nothing = unlimited(run)
    assert nothing
    assert (nothing.cost, nothing.tokens) == (None, None)
    assert nothing.until < timezone.now() + timedelta(minutes=11)
    Budget.objects.create(user=ada, limit=1_000)
    assert unlimited(run) is None


def test_a_new_period_begins_at_nothing_and_takes_no_old_rest(ada: User) -> None:
    budget = Budget.objects.create(user=ada, limit=1_000, period="day")
    run = _run(ada)
    _draw(run)
    yesterday = timezone.now() - timedelta(days=1)
    Budget.objects.update(used=900, period_start=yesterday, warned=True)
    run.allotments.update(period_start=yesterday)
    allotted = _draw(run, spent=Amount(60))
    assert (allotted.cost, _used(budget)) == (160, 100)
    assert not Budget.objects.get(pk=budget.pk).warned
    assert allotted.until <= budget.bounds(timezone.now())[1]


def test_a_warning_comes_once_in_a_period(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, str]] = []
    monkeypatch.setattr(live, "tell_user", lambda user, news: told.append((user, news[1]["message"])))
    Budget.objects.create(user=ada, limit=1_000, warn_percent=50)
    for _ in range(7):
        _draw(_run(ada))
    assert told == [(ada.pk, "50 % of the budget of ada are used or set aside.")]


def test_an_answer_longer_than_what_was_set_aside_counts_in_full(ada: User) -> None:
    budget = Budget.objects.create(user=ada, limit=1_000)
    run = _run(ada)
    _draw(run)
    _end(run, Amount(250))
    assert _used(budget) == 250


def test_what_was_on_its_way_when_a_worker_died_is_spent_and_on_record(ada: User) -> None:
    budget = Budget.objects.create(user=ada, limit=1_000)
    run = _run(ada)
    _draw(run)
    run.refresh_from_db()
    run.reserved_cost, run.reserved_tokens = 100, 1_000
    with transaction.atomic():
        settle_lost(run, 1)
        close(run)
        run.save()
    (call,) = run.calls.all()
    assert (call.cost, call.usage["estimated"], run.cost, run.reserved_cost) == (100, True, 100, 0)
    assert _used(budget) == 100
    assert balances()[0].recorded == 100


def test_a_lost_lease_draws_nothing(ada: User) -> None:
    budget = Budget.objects.create(user=ada, limit=1_000)
    run = _run(ada)
    with pytest.raises(LeaseLost):
        draw(run.id, 7, NOTHING, NOTHING, NEED)
    assert _used(budget) == 0


def test_sums_can_be_made_again_from_the_record(ada: User) -> None:
    budget = Budget.objects.create(user=ada, limit=100_000)
    ended, going_on = _run(ada), _run(ada)
    for run in (ended, going_on):
        _draw(run)
    _end(ended, Amount(70, 300))
    Budget.objects.update(used=3)
    assert rebuild() == 1
    assert _used(budget) == 70 + 800
    assert rebuild() == 0


async def test_calls_side_by_side_draw_once(ada: User) -> None:
    drawn: list[Amount] = []

    async def draw_enough(_spent: Amount, _open: Amount, need: Amount) -> Allotted:
        drawn.append(need)
        return Allotted(10_000, None, timezone.now() + timedelta(minutes=1))

    purse = Purse(Run(cost=0, tokens=0), None, draw_enough)
    for number in range(10):
        await purse.reserve(f"call/{number}", NEED)
    assert drawn == [NEED.times(2)]
    purse.settle("call/0", Amount(30, 50))
    assert purse.sums == (30, 50, 900, 9_000)
