"""Which models a run is bound to: what conditions of routes see of it, and what it keeps."""

import pytest

from accounts.budgets import Budget
from agentapp.engine import ModelUnavailable
from conversations.binding import bound_models, note_fallback
from conversations.models import Run
from tests.factories import make_conversation, make_message, make_run, make_user
from tools_admin.clients import ModelClients
from tools_admin.models import LanguageModel, Provider, Route, RouteEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """Of a conversation of about a thousand tokens, on a route with two models."""
    route, provider = Route.objects.get(name="general"), Provider.objects.create(name="P", base_url="https://x.example")
    for position, name in enumerate(["large", "small"]):
        model = LanguageModel.objects.create(provider=provider, name=name)
        RouteEntry.objects.create(route=route, model=model, position=position)
    return make_run(make_message(make_conversation(make_user()), "word " * 800))


def names(run: Run) -> list[str]:
    return [row.name for row in bound_models(run, ModelClients())]


def large(**conditions) -> None:
    RouteEntry.objects.filter(position=0).update(**conditions)


def test_the_choice_and_its_reason_are_kept_on_the_run(run):
    assert names(run) == ["large", "small"]
    run.refresh_from_db()
    large(max_tokens=1)
    assert (names(run), run.model["route"]) == (["large", "small"], "general")
    assert run.model["reason"] == "the first model that fits on the route general"


@pytest.mark.parametrize(("conditions", "first"), [({"max_tokens": 900}, "small"), ({"max_tokens": 1_100}, "large")])
def test_the_size_of_the_conversation_decides(run, conditions, first):
    large(**conditions)
    assert names(run)[0] == first


@pytest.mark.parametrize(("used", "first"), [(0, "large"), (70, "large"), (71, "small")])
def test_what_is_left_of_the_persons_budget_decides(run, used, first):
    large(min_budget=30)
    Budget.objects.create(user=run.user, limit=100, used=used)
    assert names(run)[0] == first


def test_a_run_goes_on_with_what_is_left_of_its_chain(run):
    assert names(run)[0] == "large"
    LanguageModel.objects.filter(name="large").update(enabled=False)
    assert names(run) == ["small"]


def test_after_a_fallback_the_run_stays_with_the_model_that_answered(run):
    _, small = bound_models(run, ModelClients())

    class Answered:
        row = small

    told = note_fallback(run, Answered(), [ModelUnavailable("down"), ModelUnavailable("down")])
    assert told == {"from": "large", "to": "small", "reason": "down"}
    again = Run.objects.get(pk=run.pk)
    assert again.model["reason"] == "stands in for large: down"
    assert (again.model["name"], again.model["route"], names(again)) == ("small", "general", ["small", "large"])
