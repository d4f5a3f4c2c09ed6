"""Questions to the person: the agent's own suspends the run, a server's keeps its call waiting."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conversations.test_main_job import call
from tests.fake_model import think
from tests.product import Person, Product, eventually

ASKED = {"question": "Which colour?", "choices": ["red", "blue"]}


@pytest.fixture
def person(product: Product) -> Iterator[Person]:
    """Somebody whose agent asks before it answers."""
    add = """INSERT INTO tools_admin_agent_tools (agent_id, tool_id)
        SELECT a.id, t.id FROM tools_admin_agent a, tools_admin_tool t WHERE a.is_default AND t.name = 'ask_user'"""
    product.execute(add)

    def brain(request: dict[str, Any]) -> dict[str, Any]:
        last = request["messages"][-1]
        if last["role"] == "user" and "colour" in str(last["content"]) and request.get("tools"):
            return {"calls": [{"name": "ask_user", "arguments": ASKED}]}
        if last["role"] == "tool":
            return {"text": f"I heard: {last['content']}"}
        tools = [m["content"] for m in request["messages"] if m["role"] == "tool"]
        return {"text": f"I heard: {tools or request['messages'][-1]['content']}"}

    product.model.brain = brain
    yield product.person()
    product.model.brain = think
    product.execute(
        "DELETE FROM tools_admin_agent_tools WHERE tool_id = (SELECT id FROM tools_admin_tool WHERE name = 'ask_user')"
    )


def asking(product: Product, person: Person) -> tuple[dict[str, Any], dict[str, Any]]:
    """A run that waits, and what it asks."""
    run = call(product, person, "POST", "/api/v1/runs", {"input": "Paint it in my colour."})[1]

    def waits() -> Any:
        now = call(product, person, "GET", f"/api/v1/runs/{run['id']}")[1]
        return now["status"] == "waiting" and now

    run = eventually(waits, "the run waits")
    (question,) = call(product, person, "GET", f"/api/v1/runs/{run['id']}/questions")[1]["items"]
    return run, question


def answer(product: Product, person: Person, run: dict[str, Any], question: dict[str, Any], **said: Any) -> Any:
    return call(product, person, "POST", f"/api/v1/runs/{run['id']}/answer", {"request": question["id"], **said})


def ended(product: Product, person: Person, run: dict[str, Any]) -> dict[str, Any]:
    def is_over() -> Any:
        now = call(product, person, "GET", f"/api/v1/runs/{run['id']}")[1]
        return now["ended_at"] and now

    return eventually(is_over, "the run has ended")  # type: ignore[no-any-return]


def test_an_answer_lets_the_run_go_on_with_what_was_said(product: Product, person: Person) -> None:
    run, question = asking(product, person)
    assert (run["reason"], question["text"], question["state"]) == ("input", "Which colour?", "pending")
    assert question["fields"]["properties"]["answer"]["examples"] == ["red", "blue"]
    assert answer(product, person, run, question, value={"answer": "green"})[0] == 200
    assert "The user answers: green" in ended(product, person, run)["answer"]
    events = call(product, person, "GET", f"/api/v1/runs/{run['id']}/events")[1]["items"]
    told = [event["data"]["status"] for event in events if event["channel"] == "question"]
    assert told == ["pending", "answered"]
    # The same answer again changes nothing, another one comes too late.
    assert answer(product, person, run, question, value={"answer": "green"})[0] == 200
    status, problem = answer(product, person, run, question, value={"answer": "red"})
    assert (status, problem["code"]) == (409, "nothing_to_answer")


def test_no_answer_is_told_to_the_agent(product: Product, person: Person) -> None:
    run, question = asking(product, person)
    assert answer(product, person, run, question, action="decline")[0] == 200
    assert "does not want to answer" in ended(product, person, run)["answer"]


def test_an_answer_must_fit_what_was_asked(product: Product, person: Person) -> None:
    run, question = asking(product, person)
    for value in ({}, {"answer": 3}, {"answer": ""}, {"answer": "x" * 30_000}):
        status, problem = answer(product, person, run, question, value=value)
        assert (status, problem["code"]) == (422, "invalid_answer")
    assert answer(product, person, run, question, value={"answer": "red"})[0] == 200


def test_strangers_find_no_question(product: Product, person: Person) -> None:
    run, question = asking(product, person)
    stranger = product.person()
    assert answer(product, stranger, run, question, value={"answer": "mine"})[0] == 404
    assert call(product, stranger, "GET", f"/api/v1/runs/{run['id']}/questions")[0] == 404
    other, _ = asking(product, stranger)
    assert answer(product, stranger, other, question, value={"answer": "mine"})[0] == 404
    answer(product, person, run, question, action="decline")


def test_a_stopped_run_asks_nothing_any_more(product: Product, person: Person) -> None:
    run, question = asking(product, person)
    call(product, person, "POST", f"/api/v1/runs/{run['id']}/cancel")
    assert ended(product, person, run)["status"] == "cancelled"
    assert answer(product, person, run, question, value={"answer": "red"})[0] == 409


def test_silence_is_told_when_the_time_is_over(product: Product, person: Person) -> None:
    run, _ = asking(product, person)
    product.execute("UPDATE conversations_question SET expires_at = now() WHERE state = 'pending'")
    assert "Nobody answered in time" in ended(product, person, run)["answer"]
