"""The admin's first page: what is to be set up, and figures that agree with the record."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from accounts.models import User
from conversations import statistics
from conversations.models import Call, Run
from conversations.statistics import Choice
from tests.factories import make_conversation, make_message, make_run, make_user
from tools_admin.models import Agent, LanguageModel, Provider


def ran(user: User, *, days: int = 0, status: str = "completed", model: str = "big", **fields: Any) -> Run:
    run = make_run(
        make_message(make_conversation(user)),
        status,
        model={"name": model},
        usage={"input_tokens": 100, "output_tokens": 10},
        cost=2_000_000,
        **fields,
    )
    Run.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(days=days))
    return run


def called(run: Run, seconds: float, number: int = 0) -> None:
    now = timezone.now()
    Call.objects.create(
        run=run,
        key=f"react/{number}/llm",
        kind="llm",
        request={"model": run.model["name"]},
        state="succeeded",
        effect_class="read",
        epoch=1,
        started_at=now - timedelta(seconds=seconds),
        ended_at=now,
    )


@pytest.fixture
def ada(db: None) -> User:
    return make_user("ada", is_superuser=True, is_staff=True)


@pytest.fixture
def page(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def test_every_day_of_the_period_is_there_with_its_sums(ada: User) -> None:
    ran(ada)
    ran(ada, status="failed")
    ran(ada, days=3)
    ran(ada, days=40)
    days = statistics.by_day(Choice(days=7))
    assert [(day.runs, day.failed, day.tokens, day.cost) for day in days] == [
        (0, 0, 0, 0),
        (0, 0, 0, 0),
        (0, 0, 0, 0),
        (1, 0, 110, 2_000_000),
        (0, 0, 0, 0),
        (0, 0, 0, 0),
        (2, 1, 220, 4_000_000),
    ]
    assert statistics.totals(statistics.by_day(Choice(days=90))).runs == 4


def test_days_begin_in_the_readers_time_zone(ada: User, settings: Any) -> None:
    run = ran(ada)
    Run.objects.filter(pk=run.pk).update(created_at=timezone.now().replace(hour=0, minute=30))
    with timezone.override("America/Los_Angeles"):
        days = statistics.by_day(Choice(days=7))
        counted = [day.name for day in days if day.runs]
    moment = timezone.now().replace(hour=0, minute=30)
    with timezone.override("America/Los_Angeles"):
        assert counted == [timezone.localdate(moment)]


def test_models_and_people_with_the_times_of_calls(ada: User) -> None:
    grace = make_user("grace")
    for number, seconds in enumerate((1, 2, 3)):
        called(ran(grace, model="big"), seconds, number)
    ran(ada, model="small", status="failed")
    big, small = statistics.by_model(Choice())
    assert (big.name, big.runs, small.name, small.failed) == ("big", 3, "small", 1)
    assert big.median == pytest.approx(2) and big.slow == pytest.approx(2.9) and small.median is None
    assert [(row.name, row.runs) for row in statistics.by_person(Choice())] == [("grace", 3), ("ada", 1)]


def test_filters_by_agent_and_model(ada: User) -> None:
    agent = Agent.objects.create(name="Clerk")
    ran(ada, agent=agent)
    ran(ada, model="small")
    assert statistics.totals(statistics.by_day(Choice(agent=agent.pk))).runs == 1
    assert statistics.totals(statistics.by_day(Choice(model="small"))).runs == 1


def test_the_page_shows_charts_with_a_table_beside_them(page: Client, ada: User) -> None:
    ran(ada)
    text = page.get("/admin/?days=7").content.decode()
    assert text.count("<svg viewBox") == 3 and "By model" in text and "By person" in text
    assert "The same as a table" in text


@pytest.mark.parametrize("query", ["days=0", "days=x", "agent=x", "agent=99999999999999", "model=%00", "days=²"])
def test_a_filter_that_makes_no_sense_is_left_out(page: Client, query: str) -> None:
    assert page.get(f"/admin/?{query}").status_code == 200


def test_figures_take_the_same_number_of_queries_for_many_runs(
    page: Client, ada: User, django_assert_max_num_queries: Any
) -> None:
    called(ran(ada), 1)
    page.get("/admin/")
    with django_assert_max_num_queries(60) as few:
        page.get("/admin/")
    for number in range(20):
        called(ran(make_user(f"user{number}"), model=f"model-{number % 5}"), 1)
    with django_assert_max_num_queries(len(few)):
        page.get("/admin/")


def test_figures_are_for_those_who_may_see_all_runs(client: Client, ada: User) -> None:
    ran(ada)
    clerk = make_user("clerk")
    clerk.groups.add(Group.objects.get(name="Configuration"))
    client.force_login(clerk)
    text = client.get("/admin/").content.decode()
    assert "By person" not in text and "ada" not in text
    clerk.groups.set([Group.objects.get(name="Auditors")])
    assert "By person" in client.get("/admin/").content.decode()


def test_the_checklist_ends_with_a_question_and_goes_away_with_the_answer(page: Client, ada: User) -> None:
    steps = page.get("/admin/").context["steps"]
    assert steps[0].title == "Connect a model" and steps[-1].title == "Ask a question"
    assert not steps[-1].done
    assert "<svg viewBox" not in page.get("/admin/").content.decode(), "no charts before there is anything in them"
    provider = Provider.objects.create(name="Acme", base_url="https://x.example/v1")
    LanguageModel.objects.create(provider=provider, name="gpt")
    ran(ada)
    answer = page.get("/admin/")
    assert answer.context["steps"] == []
    assert "Still to do when you like" in answer.content.decode()


def test_each_step_is_shown_to_whoever_may_do_it(client: Client, db: None) -> None:
    manager = make_user("manager")
    manager.groups.add(Group.objects.get(name="People managers"))
    client.force_login(manager)
    assert [step.title for step in client.get("/admin/").context["steps"]] == ["Invite your team", "Ask a question"]
