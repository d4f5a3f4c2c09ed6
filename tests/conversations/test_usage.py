"""What was used and what is left: the page, `GET /usage` and `GET /me`."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.budgets import tightest
from accounts.models import Budget, User
from accounts.services import create_api_key
from conversations.models import Call, Run
from tests.factories import make_conversation, make_message, make_run, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return make_user("ada")


@pytest.fixture
def page(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def make_call(run: Run, cost: int, kind: str = "llm", at: datetime | None = None, **usage: Any) -> Call:
    request = {"model": "large", "role": "loop"} if kind == "llm" else {"name": "search", "arguments": {}}
    at = at or timezone.now()
    return Call.objects.create(
        run=run,
        key=f"{kind}/{run.calls.count()}",
        kind=kind,
        request=request,
        effect_class="read",
        state="succeeded",
        result={"model": "large"} if kind == "llm" else {},
        usage=usage,
        cost=cost,
        epoch=1,
        started_at=at,
        ended_at=at,
    )


def make_used(user: User, *costs: int) -> Run:
    run = make_run(make_message(make_conversation(user)), "completed")
    for cost in costs:
        make_call(run, cost, input_tokens=100, output_tokens=10)
    make_call(run, 5, "tool")
    return run


def test_usage_is_added_up_by_what_was_asked_for(page: Client, ada: User) -> None:
    run = make_used(ada, 20, 30)
    make_call(run, 7, at=timezone.now() - timedelta(days=3), input_tokens=1, estimated=True)
    make_used(make_user("eve"), 1_000)
    (model,) = page.get("/api/v1/usage?by=model").json()["items"]
    assert (model["name"], model["calls"], model["input_tokens"], model["cost"]) == ("large", 3, 201, 57)
    assert model["estimated"] is True
    (tool,) = page.get("/api/v1/usage?by=tool").json()["items"]
    assert (tool["name"], tool["runs"], tool["cost"], tool["estimated"]) == ("search", 1, 5, False)
    before, today = page.get("/api/v1/usage?by=day").json()["items"]
    assert (before["cost"], today["cost"]) == (7, 55)
    assert today["name"] == timezone.localdate().isoformat()
    assert [row["name"] for row in page.get("/api/v1/usage?by=user").json()["items"]] == ["ada"]


def test_a_period_is_whole_days(page: Client, ada: User) -> None:
    run = make_used(ada)
    make_call(run, 7, at=timezone.now() - timedelta(days=40))
    day = timezone.localdate() - timedelta(days=40)
    (row,) = page.get(f"/api/v1/usage?since={day}&until={day}").json()["items"]
    assert row["cost"] == 7
    assert page.get("/api/v1/usage?since=nonsense").status_code == 422
    assert page.get("/api/v1/usage?by=nonsense").status_code == 422
    assert page.get("/api/v1/usage?since=0001-01-01&until=9999-12-31").status_code == 400
    assert page.get("/api/v1/usage?since=2020-02-01&until=2020-01-01").status_code == 400


def test_whoever_may_look_at_all_runs_sees_what_all_used(page: Client, ada: User) -> None:
    make_used(ada, 20)
    make_used(make_user("eve"), 1_000)
    ada.user_permissions.add(Permission.objects.get(codename="view_all_runs"))
    assert [row["name"] for row in page.get("/api/v1/usage?by=user").json()["items"]] == ["eve", "ada"]


def test_me_says_what_is_left(page: Client, ada: User) -> None:
    group = Group.objects.create(name="Research")
    ada.groups.add(group)
    key, text = create_api_key(ada, "nightly")
    other_key, _ = create_api_key(ada, "other")
    Budget.objects.create(user=ada, limit=10_000_000, used=8_500_000)
    Budget.objects.create(group=group, limit=500, used=100, unit="tokens", period="week")
    Budget.objects.create(api_key=key, limit=3)
    Budget.objects.create(api_key=other_key, limit=4)
    Budget.objects.create(user=make_user("eve"), limit=1)
    me = page.get("/api/v1/me").json()
    assert (me["username"], me["groups"]) == ("ada", ["Research"])
    assert [(b["of"], b["unit"], b["left"], b["low"]) for b in me["budgets"]] == [
        ("user", "cost", 1_500_000, True),
        ("group", "tokens", 400, False),
    ]
    by_key = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {text}"}).json()
    assert [b["limit"] for b in by_key["budgets"]] == [10_000_000, 500, 3]


def test_a_period_that_is_over_leaves_everything(page: Client, ada: User) -> None:
    last_month = timezone.now() - timedelta(days=40)
    Budget.objects.create(user=ada, limit=100, used=100, period_start=last_month)
    (budget,) = page.get("/api/v1/me").json()["budgets"]
    assert (budget["used"], budget["left"], budget["low"]) == (0, 100, False)


def test_the_page_shows_the_tightest_budget(page: Client, ada: User) -> None:
    group = Group.objects.create(name="Research")
    ada.groups.add(group)
    assert "budget-left" in page.get("/").content.decode()
    assert tightest(ada) is None
    Budget.objects.create(user=ada, limit=10_000_000, used=1)
    Budget.objects.create(group=group, limit=1_000, used=900, unit="tokens")
    html = page.get("/").content.decode()
    assert "100 tokens left" in html
    assert "data-low" in html


def test_the_usage_page_has_a_table_of_each_kind_in_a_fixed_number_of_queries(
    page: Client, ada: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    assert "Nothing was used" in page.get("/usage/").content.decode()
    for number in range(3):
        group = Group.objects.create(name=f"Group {number}")
        ada.groups.add(group)
        Budget.objects.create(group=group, limit=100)
    make_used(ada, 20, 30_000_000)
    make_used(make_user("eve"), 1_000)
    # session, user, permissions of the user and of groups, budgets; three tables, budgets, list, what waits
    with django_assert_num_queries(5 + 6):
        html = page.get("/usage/?days=7").content.decode()
    assert "30.00 USD" in html
    assert "search" in html
    assert "Group 2" in html
    assert page.get("/usage/?days=nonsense").status_code == 200
