"""Which model a route chooses, and what it says about it."""

from datetime import time

import pytest
from django.contrib.auth.models import Group

from accounts.models import User
from tools_admin.errors import NoModel
from tools_admin.models import Agent, LanguageModel, Provider, Route, RouteEntry
from tools_admin.routing import Situation, choose, choose_for_role

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return User.objects.create(username="ada", password="!")


@pytest.fixture
def sales(ada) -> Group:
    group = Group.objects.create(name="Sales")
    ada.groups.add(group)
    return group


@pytest.fixture
def research() -> Group:
    return Group.objects.create(name="Research")


@pytest.fixture
def provider() -> Provider:
    return Provider.objects.create(name="Acme", base_url="https://api.example.org/v1")


@pytest.fixture
def general(provider) -> Route:
    """Two models, `large` before `small`."""
    route = Route.objects.get(name="general")
    for position, (name, size) in enumerate([("large", 100_000), ("small", 10_000)]):
        model = LanguageModel.objects.create(provider=provider, name=name, context_size=size, max_output_tokens=1_000)
        RouteEntry.objects.create(route=route, model=model, position=position)
    return route


def first(route: Route) -> RouteEntry:
    return route.entries.get(position=0)


def change(entry: RouteEntry, **values) -> None:
    RouteEntry.objects.filter(pk=entry.pk).update(**values)


def names(choice) -> list[str]:
    return [model.name for model in choice.models]


def test_the_first_model_answers_and_the_others_stand_in_for_it(general, ada):
    choice = choose(None, ada)
    assert (names(choice), choice.route) == (["large", "small"], "general")
    assert choice.reason == "the first model that fits on the route general"


def test_the_order_is_the_administrators(general, ada):
    change(first(general), position=5)
    assert names(choose(None, ada)) == ["small", "large"]


@pytest.mark.parametrize(
    ("condition", "fits", "does_not", "why"),
    [
        ({"tools": "with"}, {"tools": True}, {}, "only for runs with tools"),
        ({"tools": "without"}, {}, {"tools": True}, "only for runs without tools"),
        ({"images": "without"}, {}, {"images": True}, "only for runs without images"),
        ({"min_tokens": 500}, {"tokens": lambda: 500}, {"tokens": lambda: 499}, "only from 500 tokens"),
        ({"max_tokens": 5_000}, {"tokens": lambda: 5_000}, {"tokens": lambda: 5_001}, "only up to 5,000 tokens"),
        ({"min_budget": 20}, {"budget_left": lambda: 20}, {"budget_left": lambda: 19}, "only while 20 %"),
        ({"min_budget": 20}, {"budget_left": lambda: None}, {"budget_left": lambda: 0}, "of the budget"),
        (
            {"from_time": time(8), "until_time": time(18)},
            {"at": time(8)},
            {"at": time(18)},
            "only from 8 a.m. to 6 p.m.",
        ),
        ({"from_time": time(22), "until_time": time(6)}, {"at": time(23)}, {"at": time(6)}, "only from 10 p.m."),
        ({"from_time": time(22), "until_time": time(6)}, {"at": time(5, 59)}, {"at": time(12)}, "to 6 a.m."),
    ],
)
def test_an_entry_is_passed_over_where_its_condition_does_not_hold(general, ada, condition, fits, does_not, why):
    model = first(general).model
    model.vision = True
    model.save()
    LanguageModel.objects.update(vision=True)
    change(first(general), **condition)
    assert names(choose(None, ada, Situation(**fits))) == ["large", "small"]
    choice = choose(None, ada, Situation(**does_not))
    assert names(choice) == ["small"]
    assert f"large: {why}" in choice.reason or why in choice.reason


def test_who_sends_images_gets_a_model_that_sees_them(general, ada):
    LanguageModel.objects.filter(name="small").update(vision=True)
    choice = choose(None, ada, Situation(images=True))
    assert (names(choice), choice.passed[0][1]) == (["small"], "it does not see images")


def test_what_is_too_long_for_a_model_goes_to_a_larger_one(general, ada):
    change(first(general), position=5)
    assert names(choose(None, ada, Situation(tokens=lambda: 20_000))) == ["large"]


def test_entries_and_models_are_for_the_groups_that_they_name(general, ada, sales, research):
    first(general).groups.add(research)
    assert names(choose(None, ada)) == ["small"]
    first(general).groups.add(sales)
    assert names(choose(None, ada)) == ["large", "small"]
    first(general).model.groups.add(research)
    choice = choose(None, ada)
    assert (names(choice), choice.passed[0][1]) == (["small"], "it is for other groups")


def test_a_model_whose_breaker_is_open_comes_last(general, ada):
    paused = {first(general).model_id}
    choice = choose(None, ada, Situation(paused=paused))
    assert names(choice) == ["small", "large"]
    assert "large: it does not answer at the moment" in choice.reason


def test_disabled_models_providers_and_routes_do_not_count(general, ada, provider):
    LanguageModel.objects.filter(name="large").update(enabled=False)
    assert names(choose(None, ada)) == ["small"]
    LanguageModel.objects.filter(name="large").update(enabled=True, is_default=True)
    Route.objects.filter(pk=general.pk).update(enabled=False)
    assert choose(None, ada).reason == "the default model"
    Provider.objects.update(enabled=False)
    with pytest.raises(NoModel):
        choose(None, ada)


def test_an_agents_route_comes_before_the_general_one_and_its_model_before_both(general, ada, provider):
    own = LanguageModel.objects.create(provider=provider, name="own")
    route = Route.objects.create(name="reports")
    RouteEntry.objects.create(route=route, model=own)
    agent = Agent.objects.create(name="Writer", route=route)
    assert (choose(agent, ada).route, names(choose(agent, ada))) == ("reports", ["own"])
    agent.model = LanguageModel.objects.get(name="small")
    assert choose(agent, ada).reason == "the model of the agent Writer"


def test_where_nothing_fits_the_default_model_answers_and_says_why(general, ada, provider):
    LanguageModel.objects.create(provider=provider, name="spare", is_default=True)
    for entry in general.entries.all():
        change(entry, tools="with")
    choice = choose(None, ada)
    assert names(choice) == ["spare"]
    assert "no model of the route fits; large: only for runs with tools" in choice.reason


def test_a_model_for_other_groups_is_no_default_for_this_person(ada, research, provider):
    only = LanguageModel.objects.create(provider=provider, name="only", is_default=True)
    only.groups.add(research)
    with pytest.raises(NoModel):
        choose(None, ada)
    assert choose(None).model == only


def test_what_a_person_may_use_is_theirs(ada, sales, research, provider):
    for name, groups in {"all": [], "ours": [sales, research], "theirs": [research]}.items():
        LanguageModel.objects.create(provider=provider, name=name).groups.set(groups)
    assert set(LanguageModel.objects.visible_to(ada).values_list("name", flat=True)) == {"all", "ours"}
    ada.is_active = False
    assert not LanguageModel.objects.visible_to(ada).exists()


def test_a_role_without_models_is_played_by_the_runs_own(general, ada, provider):
    assert choose_for_role("fast", ada) is None
    model = LanguageModel.objects.create(provider=provider, name="quick")
    RouteEntry.objects.create(route=Route.objects.get(name="fast"), model=model)
    assert names(choose_for_role("fast", ada)) == ["quick"]


def test_embedding_models_answer_no_questions(general, ada, provider):
    LanguageModel.objects.filter(name="large").update(kind="embedding")
    assert names(choose(None, ada)) == ["small"]


def test_a_choice_takes_one_query_and_a_second_one_after_a_change(general, ada, provider, django_assert_num_queries):
    for number in range(20):
        model = LanguageModel.objects.create(provider=provider, name=f"m{number}")
        RouteEntry.objects.create(route=general, model=model, position=number)
    for queries in (2, 1):
        with django_assert_num_queries(queries):
            choose(None, ada)
    Provider.objects.update(enabled=False)
    with pytest.raises(NoModel):
        choose(None, ada)


def test_what_is_remembered_of_a_route_is_not_what_another_person_may_use(general, ada, sales):
    first(general).groups.add(sales)
    assert names(choose(None, ada)) == ["large", "small"]
    grace = User.objects.create(username="grace", password="!")
    assert names(choose(None, grace)) == ["small"]
    assert names(choose(None, ada)) == ["large", "small"]
    LanguageModel.objects.filter(name="large").update(label="Largest")
    assert str(choose(None, ada).model) == "Largest"


def test_the_size_is_asked_for_once(general, ada):
    asked = []
    choose(None, ada, Situation(tokens=lambda: asked.append(1) or 0))
    assert len(asked) <= 2
