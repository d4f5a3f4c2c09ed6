"""Which agent answers, and that a run keeps the one it began with."""

from collections.abc import Iterator

import pytest

from tests.conversations.test_main_job import call
from tests.product import Person, Product, eventually

MAKE = """
from django.contrib.auth.models import Group
from tools_admin.models import Agent, Tool
agent, _ = Agent.objects.update_or_create(name="Poet", defaults={"instructions": "Rhyme.", "enabled": True})
agent.tools.set(Tool.objects.filter(name="calculator"))
agent.groups.set([Group.objects.get_or_create(name="Poets")[0]])
print(agent.pk)
"""


@pytest.fixture
def poet(product: Product) -> Iterator[int]:
    yield int(product.manage("shell", "--no-imports", "-c", MAKE))
    product.manage(
        "shell", "--no-imports", "-c", "from tools_admin.models import *; Agent.objects.get(name='Poet').delete()"
    )


@pytest.fixture
def person(product: Product, poet: int) -> Person:
    someone = product.person()
    product.execute(
        "INSERT INTO accounts_user_groups (user_id, group_id) SELECT %s, id FROM auth_group WHERE name = 'Poets'",
        someone.id,
    )
    return someone


def test_the_chosen_agent_answers_and_who_may_not_use_it_does_not_find_it(
    product: Product, person: Person, poet: int
) -> None:
    before = len(product.model.requests)
    run = call(product, person, "POST", "/api/v1/runs", {"input": "Hello", "agent": poet, "wait": 20})[1]
    assert (run["status"], run["agent"]) == ("completed", poet)
    assert "Rhyme." in str(product.model.requests[before]["messages"][0])
    status, problem = call(product, product.person(), "POST", "/api/v1/runs", {"input": "Hello", "agent": poet})
    assert (status, problem["code"]) == (404, "not_found")
    for nonsense in (0, -1, 2**70, "x"):
        assert call(product, person, "POST", "/api/v1/runs", {"input": "Hello", "agent": nonsense})[0] == 422


def test_a_run_keeps_the_agent_it_began_with(product: Product, person: Person, poet: int) -> None:
    product.execute("UPDATE tools_admin_tool SET approval = 'always' WHERE name = 'calculator'")
    try:
        run = call(product, person, "POST", "/api/v1/runs", {"input": "What is 12 * 12?", "agent": poet})[1]
        (asked,) = eventually(lambda: call(product, person, "GET", "/api/v1/approvals")[1]["items"], "it asks")
        product.execute("UPDATE tools_admin_agent SET instructions = 'Shout.' WHERE id = %s", poet)
        before = len(product.model.requests)
        call(product, person, "POST", f"/api/v1/approvals/{asked['id']}", {"decision": "approve"})
        ended = eventually(
            lambda: (found := call(product, person, "GET", f"/api/v1/runs/{run['id']}")[1])["ended_at"] and found, "end"
        )
    finally:
        product.execute("UPDATE tools_admin_tool SET approval = 'writes' WHERE name = 'calculator'")
    assert (ended["status"], ended["answer"]) == ("completed", "The result is 144.")
    assert "Rhyme." in str(product.model.requests[before]["messages"][0])
    numbers = "SELECT number FROM tools_admin_agentversion WHERE agent_id = %s ORDER BY number"
    used = (
        "SELECT v.number FROM conversations_run r JOIN tools_admin_agentversion v ON v.id = agent_version_id "
        "WHERE r.id = %s"
    )
    assert product.sql(used, run["id"]) == [(1,)]
    again = call(product, person, "POST", "/api/v1/runs", {"input": "Hello", "agent": poet, "wait": 20})[1]
    assert product.sql(used, again["id"]) == [(2,)]
    assert product.sql(numbers, poet) == [(1,), (2,)]


def test_when_an_agent_is_taken_away_another_one_answers(product: Product, person: Person, poet: int) -> None:
    run = call(product, person, "POST", "/api/v1/runs", {"input": "Hello", "agent": poet, "wait": 20})[1]
    product.execute("DELETE FROM accounts_user_groups WHERE user_id = %s", person.id)
    sent = call(product, person, "POST", f"/api/v1/conversations/{run['conversation']}/messages", {"content": "More"})[
        1
    ]
    found = call(product, person, "GET", f"/api/v1/runs/{sent['run']}")[1]
    assert found["agent"] not in (None, poet)


def test_an_agents_limit_ends_its_runs_with_an_answer(product: Product, person: Person, poet: int) -> None:
    product.execute("UPDATE tools_admin_agent SET max_tool_calls = 1 WHERE id = %s", poet)
    product.model.brain = lambda request: (
        {"calls": [{"name": "calculator", "arguments": {"expression": f"{len(request['messages'])} + 1"}}]}
        if request.get("tools")
        else {"text": "As far as it went."}
    )
    run = call(product, person, "POST", "/api/v1/runs", {"input": "Go on and on", "agent": poet, "wait": 20})[1]
    assert (run["status"], run["reason"]) == ("completed", "limit:tool_calls")
