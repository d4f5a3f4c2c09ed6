"""Ends and turns in the life of a run, on the running product."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conversations.test_main_job import call
from tests.conversations.test_socket import page, send
from tests.fake_model import think
from tests.product import Person, Product, eventually


@pytest.fixture
def person(product: Product) -> Person:
    return product.person()


@pytest.fixture
def without_calculator(product: Product) -> Iterator[None]:
    product.execute("UPDATE tools_admin_tool SET enabled = false WHERE name = 'calculator'")
    yield
    product.execute("UPDATE tools_admin_tool SET enabled = true WHERE name = 'calculator'")


def _run(product: Product, person: Person, text: str, wait: float = 20) -> dict[str, Any]:
    run: dict[str, Any] = call(product, person, "POST", "/api/v1/runs", {"input": text, "wait": wait})[1]
    return run


def test_a_refusing_provider_fails_the_run_in_words(product: Product, person: Person) -> None:
    product.model.brain = lambda _: {"status": 401, "error": "Incorrect API key provided: sk-canary"}
    run = _run(product, person, "Hello")
    assert (run["status"], run["reason"]) == ("failed", "model_refused")
    assert "administrator" in run["error"]
    assert "canary" not in run["error"]


def test_try_again_repeats_nothing_that_was_done(product: Product, person: Person) -> None:
    def breaks_after_the_tool(request: dict[str, Any]) -> dict[str, Any]:
        if request["messages"][-1]["role"] == "tool":
            return {"status": 400, "error": "no"}
        return think(request)

    product.model.brain = breaks_after_the_tool
    failed = _run(product, person, "What is 12 * 13?")
    assert failed["status"] == "failed"
    product.model.brain = think
    before = len(product.model.requests)
    again = call(product, person, "POST", f"/api/v1/runs/{failed['id']}/retry")[1]
    run = eventually(lambda: _ended(product, person, again), "the second run has ended")
    assert (run["status"], run["answer"]) == ("completed", "The result is 156.")
    first_request = product.model.requests[before]
    assert first_request["messages"][-1]["role"] == "tool", "the model was asked again for what was recorded"


def test_a_completed_run_cannot_be_tried_again(product: Product, person: Person) -> None:
    run = _run(product, person, "Hello")
    status, problem = call(product, person, "POST", f"/api/v1/runs/{run['id']}/retry")
    assert (status, problem["code"]) == (409, "run_ended")


def test_deleting_a_conversation_stops_its_run(product: Product, person: Person) -> None:
    product.model.token_delay, hangups = 0.05, product.model.hangups
    with page(product, person) as mine:
        ack = send(mine, "Tell a long story")
        mine.until(lambda _: mine.text.get(ack["run"], "") != "")
        status, _ = call(product, person, "DELETE", f"/api/v1/conversations/{ack['conversation']}")
        assert status == 204
        mine.until(lambda b: b.get("channel") == "conversation" and b["data"]["deleted"])
    eventually(lambda: product.model.hangups > hangups, "the model's stream is closed", 5)
    assert product.sql("SELECT count(*) FROM conversations_run WHERE id = %s", ack["run"]) == [(0,)]
    assert "IntegrityError" not in product.log("worker")


def test_stopping_twice_and_stopping_an_ended_run_change_nothing(product: Product, person: Person) -> None:
    run = _run(product, person, "Hello")
    status, after = call(product, person, "POST", f"/api/v1/runs/{run['id']}/cancel")
    assert (status, after["status"], after["ended_at"]) == (200, "completed", run["ended_at"])


def test_a_run_that_breaks_off_at_the_same_point_again_and_again_is_given_up(product: Product, person: Person) -> None:
    product.model.stop()
    run = call(product, person, "POST", "/api/v1/runs", {"input": "Hello"})[1]
    product.execute(
        "UPDATE conversations_run SET status = 'running', crashes = 2, retry_at = NULL, epoch = epoch + 1, "
        "lease_expires_at = now() - interval '1 second' WHERE id = %s",
        run["id"],
    )
    run = eventually(lambda: _ended(product, person, run), "the run has ended")
    assert (run["status"], run["reason"]) == ("failed", "crash_loop")


def test_a_disabled_tool_is_gone_with_the_next_run(product: Product, person: Person, without_calculator: None) -> None:
    before = len(product.model.requests)
    _run(product, person, "What is 2 * 3?")
    offered = [tool["function"]["name"] for tool in product.model.requests[before].get("tools") or ()]
    assert "calculator" not in offered
    assert "current_time" in offered


def test_a_pinned_message_is_told_to_the_model(product: Product, person: Person) -> None:
    with page(product, person) as mine:
        first = send(mine, "My number is 42", "a")
        mine.ended(first["run"])
        assert call(product, person, "PATCH", f"/api/v1/messages/{first['message']}", {"pinned": True})[0] == 200
        second = send(mine, "Hello again", "b", first["conversation"])
        mine.ended(second["run"])
    told = [m["content"] for m in product.model.requests[-1]["messages"]]
    assert "My number is 42" in told


def _ended(product: Product, person: Person, run: dict[str, Any]) -> dict[str, Any] | None:
    state: dict[str, Any] = call(product, person, "GET", f"/api/v1/runs/{run['id']}")[1]
    return state if state["ended_at"] else None


def test_a_tool_disabled_during_the_run_is_denied_at_the_call(product: Product, person: Person) -> None:
    def disables_then_calls(request: dict[str, Any]) -> dict[str, Any]:
        product.execute("UPDATE tools_admin_tool SET enabled = false WHERE name = 'calculator'")
        return think(request)

    product.model.brain = disables_then_calls
    try:
        run = _run(product, person, "What is 6 * 7?")
        tools = [
            c
            for c in call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
            if c["kind"] == "tool"
        ]
        assert [c["result"]["is_error"] for c in tools] == [True]
        assert "not available" in tools[0]["result"]["content"]
    finally:
        product.execute("UPDATE tools_admin_tool SET enabled = true WHERE name = 'calculator'")


def test_an_integer_of_any_size_does_not_stop_a_run(product: Product, person: Person) -> None:
    huge = 2**70

    def asks_hugely(request: dict[str, Any]) -> dict[str, Any]:
        if request["messages"][-1]["role"] == "user" and request.get("tools"):
            return {"calls": [{"name": "calculator", "arguments": {"expression": "1 + 1", "surplus": huge}}]}
        return {"text": "Done."}

    product.model.brain = asks_hugely
    run = _run(product, person, "Hello")
    assert run["status"] == "completed"
    stored = product.sql("SELECT request->'arguments' ? 'surplus' FROM conversations_call WHERE run_id = %s", run["id"])
    assert (True,) in stored
