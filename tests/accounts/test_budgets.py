"""Budgets in the admin, and their periods in people's own time zones."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils.translation import override

from accounts.models import Budget, User
from accounts.money import shown_money
from accounts.periods import bounds
from tests.factories import make_user

pytestmark = pytest.mark.django_db

FORM = {"unit": "cost", "period": "month", "warn_percent": "80"}


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    return client


@pytest.fixture
def ada() -> User:
    return make_user("ada")


def _add(admin: Client, **fields: Any) -> Any:
    return admin.post("/admin/accounts/budget/add/", {**FORM, **fields})


def test_a_limit_is_written_in_units_of_the_currency(admin: Client, ada: User) -> None:
    assert _add(admin, user=ada.pk, amount="12.5").status_code == 302
    budget = Budget.objects.get(user=ada)
    assert (budget.limit, budget.unit, budget.period) == (12_500_000, "cost", "month")
    form = admin.get(f"/admin/accounts/budget/{budget.pk}/change/").content.decode()
    assert 'value="12.5"' in form
    admin.post(f"/admin/accounts/budget/{budget.pk}/change/", {"amount": "20", "warn_percent": "50"})
    budget.refresh_from_db()
    assert (budget.limit, budget.warn_percent) == (20_000_000, 50)


def test_a_limit_in_tokens_is_a_whole_number(admin: Client, ada: User) -> None:
    refused = _add(admin, user=ada.pk, unit="tokens", amount="1000.5")
    assert "whole numbers" in refused.content.decode()
    assert _add(admin, user=ada.pk, unit="tokens", amount="250000").status_code == 302
    assert Budget.objects.get(user=ada).limit == 250_000


@pytest.mark.parametrize("owners", [(), ("user", "group")])
def test_a_budget_has_one_owner(admin: Client, ada: User, owners: tuple[str, ...]) -> None:
    ids = {"user": ada.pk, "group": Group.objects.create(name="Research").pk}
    answer = _add(admin, amount="1", **{name: ids[name] for name in owners})
    assert "one user, one group or one API key" in answer.content.decode()
    assert not Budget.objects.exists()


def test_a_second_budget_of_the_same_owner_is_refused(admin: Client, ada: User) -> None:
    Budget.objects.create(user=ada, limit=1)
    assert _add(admin, user=ada.pk, amount="1").status_code == 200
    with pytest.raises(IntegrityError), transaction.atomic():
        Budget.objects.create(user=ada, group=Group.objects.create(name="Research"), limit=1)


@pytest.mark.parametrize("amount", ["-1", "", "a lot", "99999999999999999999", "1e40", "NaN"])
def test_an_odd_limit_is_refused_in_words(admin: Client, ada: User, amount: str) -> None:
    assert _add(admin, user=ada.pk, amount=amount).status_code == 200
    assert not Budget.objects.exists()


def test_the_list_says_what_is_used(admin: Client, ada: User) -> None:
    Budget.objects.create(user=ada, limit=10_000_000, used=2_500_000)
    html = admin.get("/admin/accounts/budget/").content.decode()
    for words in ("10.00 USD", "7.50 USD", "25&nbsp;%"):
        assert words in html


def test_an_agents_budget_has_its_own_page(admin: Client) -> None:
    from tools_admin.models import Agent, AgentBudget

    agent = Agent.objects.create(name="Analyst")
    answer = admin.post("/admin/tools_admin/agentbudget/add/", {**FORM, "agent": agent.pk, "amount": "3"})
    assert answer.status_code == 302
    assert AgentBudget.objects.get(agent=agent).limit == 3_000_000
    assert "Analyst" in admin.get("/admin/tools_admin/agentbudget/").content.decode()
    assert "Analyst" not in admin.get("/admin/accounts/budget/").content.decode()


@pytest.mark.parametrize(
    ("period", "start", "end"),
    [
        ("day", datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC)),  # summer time begins
        ("week", datetime(2026, 3, 22, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC)),
        ("month", datetime(2026, 2, 28, 23, tzinfo=UTC), datetime(2026, 3, 31, 22, tzinfo=UTC)),
    ],
)
def test_a_period_begins_at_midnight_where_its_owner_lives(period: str, start: datetime, end: datetime) -> None:
    at = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert bounds(period, at, ZoneInfo("Europe/Berlin")) == (start, end)


def test_a_period_is_the_owners(ada: User) -> None:
    ada.time_zone = "Pacific/Auckland"
    ada.save()
    budget = Budget.objects.create(user=ada, limit=1, period="day")
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)  # January 2nd, 1 o'clock there
    assert budget.bounds(at)[0] == datetime(2026, 1, 1, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("micro", "shown"),
    [
        (0, "0.00 USD"),
        (3_100_000, "3.10 USD"),
        (1_234_567_890, "1,234.57 USD"),
        (8_000, "0.0080 USD"),
        (3, "0.000003 USD"),
    ],
)
def test_small_amounts_have_the_digits_that_show_them(micro: int, shown: str) -> None:
    with override("en"):
        assert shown_money(micro) == shown
