"""Answers that are kept until a row of the configuration changes."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from accounts.models import User
from tests.factories import make_user
from tests.rows import make_row
from tools_admin.kept import MOST_KEPT, Kept, at_one_moment
from tools_admin.models import Agent, Tool
from tools_admin.services import agents_for, tools_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return make_user("ada")


@pytest.fixture
def agent() -> Agent:
    return Agent.objects.create(name="Clerk")


def _raw(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


CHANGES: dict[str, Callable[[Agent], Any]] = {
    "saved": lambda agent: agent.save(),
    "many at once": lambda agent: Agent.objects.update(description="New"),
    "behind the ORM's back": lambda agent: _raw("UPDATE tools_admin_agent SET description = 'x'"),
    "deleted": lambda agent: agent.delete(),
    "a new row": lambda agent: Agent.objects.create(name="Other"),
    "another group's": lambda agent: agent.groups.add(Group.objects.create(name="Sales")),
    "a tool": lambda agent: agent.tools.add(make_row(Tool)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_answer_is_kept_until_a_row_changes(agent: Agent, change: Callable[[Agent], Any]) -> None:
    kept: Kept[int] = Kept(Agent)
    answers = iter(range(9))
    assert [kept.get("count", None, lambda: next(answers)) for _ in range(3)] == [0, 0, 0]
    change(agent)
    assert [kept.get("count", None, lambda: next(answers)) for _ in range(2)] == [1, 1]


def test_what_was_seen_of_a_change_that_was_taken_back_is_forgotten(agent: Agent) -> None:
    kept: Kept[str] = Kept(Agent)

    def name() -> str:
        return kept.get(agent.pk, None, lambda: Agent.objects.get(pk=agent.pk).name)

    try:
        with transaction.atomic():
            Agent.objects.filter(pk=agent.pk).update(name="Impostor")
            assert name() == "Impostor"
            raise LookupError
    except LookupError:
        assert name() == "Clerk"


def test_people_of_the_same_groups_share_an_answer_and_others_do_not(ada: User) -> None:
    sales = Group.objects.create(name="Sales")
    grace, eve = make_user("grace"), make_user("eve")
    for member in (ada, grace):
        member.groups.add(sales)
    kept: Kept[str] = Kept(Agent)
    assert [kept.get("who", user, lambda user=user: user.username) for user in (ada, grace, eve)] == [
        "ada",
        "ada",
        "eve",
    ]
    grace.is_active = False
    assert kept.get("who", grace, lambda: "nobody") == "nobody"
    ada.groups.clear()
    assert kept.get("who", ada, lambda: "again") == "eve", "she is like any person without groups now"


def test_no_more_is_kept_than_has_its_place() -> None:
    kept: Kept[int] = Kept(Agent)
    for number in range(MOST_KEPT + 1):
        assert kept.get(number, None, lambda number=number: number) == number
    assert kept.get(0, None, lambda: -1) == -1


def test_a_tool_that_is_switched_off_is_off_with_the_next_question(ada: User, agent: Agent) -> None:
    tool = make_row(Tool)
    agent.tools.add(tool)
    assert tools_for(agent, ada) == [tool]
    for off in ({"enabled": False}, {"enabled": True}):
        Tool.objects.filter(pk=tool.pk).update(**off)
        assert tools_for(agent, ada) == ([tool] if off["enabled"] else [])
    type(tool.connector).objects.update(enabled=False)
    assert tools_for(agent, ada) == []


def test_the_known_questions_cost_one_query(ada: User, agent: Agent, django_assert_num_queries: Any) -> None:
    for ask in (lambda: agents_for(ada), lambda: tools_for(agent, ada)):
        ask()
        with django_assert_num_queries(1):
            ask()


def test_questions_of_one_moment_cost_one_query_together(
    ada: User, agent: Agent, django_assert_num_queries: Any
) -> None:
    agents_for(ada), tools_for(agent, ada)
    with django_assert_num_queries(1), at_one_moment(ada):
        assert agent in agents_for(ada) and tools_for(agent, ada) == []


def test_what_changes_within_a_moment_is_seen_after_it_and_others_have_their_own(ada: User, agent: Agent) -> None:
    sales = Group.objects.create(name="Sales")
    eve = make_user("eve")
    eve.groups.add(sales)
    agent.groups.add(sales)
    with at_one_moment(ada):
        assert agent not in agents_for(ada)
        assert agent in agents_for(eve)
        agent.groups.clear()
    assert agent in agents_for(ada)
