"""The product's main job on its real parts: ask by API, a worker runs the agent, the answer is on record."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.product import Person, Product, eventually


def call(product: Product, person: Person | None, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{product.url}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **(person.bearer if person else {})},
    )
    try:
        with urllib.request.urlopen(request, timeout=70) as answer:  # noqa: S310 - loopback
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


@pytest.fixture
def person(product: Product) -> Person:
    return product.person()


def test_a_question_is_answered(product: Product, person: Person) -> None:
    status, run = call(product, person, "POST", "/api/v1/runs", {"input": "Good morning", "wait": 20})
    assert (status, run["status"], run["reason"]) == (200, "completed", "final_answer"), run
    assert run["answer"] == "Hello! You wrote: Good morning"
    assert run["model"]["name"] == "fake-model"
    assert run["usage"]["calls"] == 1


def test_a_tool_call_is_on_record(product: Product, person: Person) -> None:
    _, run = call(product, person, "POST", "/api/v1/runs", {"input": "What is 123 * 45?", "wait": 20})
    assert run["status"] == "completed", run
    assert "5535" in run["answer"]
    calls = call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
    tools = [c for c in calls if c["kind"] == "tool"]
    assert [(c["request"]["name"], c["result"]["content"], c["state"]) for c in tools] == [
        ("calculator", "123 * 45 = 5535", "succeeded")
    ]


def test_events_count_without_a_gap_and_end_once(product: Product, person: Person) -> None:
    _, run = call(product, person, "POST", "/api/v1/runs", {"input": "What is 2 + 3?", "wait": 20})
    events = call(product, person, "GET", f"/api/v1/runs/{run['id']}/events")[1]["items"]
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert [e["channel"] for e in events].count("done") == 1
    assert events[-1]["channel"] == "done"
    assert events[-1]["data"]["answer"] == run["answer"]


def test_strangers_find_nothing(product: Product, person: Person) -> None:
    _, run = call(product, person, "POST", "/api/v1/runs", {"input": "Hello", "wait": 20})
    stranger = product.person()
    for path in ("", "/calls", "/events"):
        assert call(product, stranger, "GET", f"/api/v1/runs/{run['id']}{path}")[0] == 404
    assert call(product, stranger, "POST", f"/api/v1/runs/{run['id']}/cancel")[0] == 404
    assert call(product, None, "GET", f"/api/v1/runs/{run['id']}")[0] == 401


def test_stop_keeps_the_text_so_far_and_hangs_up(product: Product, person: Person) -> None:
    product.model.token_delay = 0.05
    hangups = product.model.hangups
    _, run = call(product, person, "POST", "/api/v1/runs", {"input": "Tell a long story"})
    eventually(lambda: _events(product, person, run, "answer"), "the answer has begun")
    call(product, person, "POST", f"/api/v1/runs/{run['id']}/cancel")
    run = eventually(lambda: _ended(product, person, run), "the run is stopped", 5)
    assert (run["status"], run["reason"]) == ("cancelled", "user")
    assert run["answer"].startswith("word0 ")
    assert product.sql("SELECT partial FROM conversations_message WHERE run_id = %s", run["id"]) == [(True,)]
    eventually(lambda: product.model.hangups > hangups, "the model's stream is closed", 2)


def test_an_unknown_tool_is_told_to_the_model(product: Product, person: Person) -> None:
    _, run = call(product, person, "POST", "/api/v1/runs", {"input": "Use an unknown tool", "wait": 20})
    assert run["status"] == "completed"
    events = call(product, person, "GET", f"/api/v1/runs/{run['id']}/events")[1]["items"]
    errors = [e["data"]["error"] for e in events if e["data"].get("error")]
    assert any("no_such_tool" in error and "calculator" in error for error in errors)


@pytest.mark.parametrize(
    ("content", "status", "code"), [("  ", 400, "empty_message"), ("x" * 1_000_000, 413, "message_too_long")]
)
def test_bad_messages_are_refused_in_words(
    product: Product, person: Person, content: str, status: int, code: str
) -> None:
    got, problem = call(product, person, "POST", "/api/v1/runs", {"input": content})
    assert (got, problem["code"]) == (status, code)
    assert problem["detail"]


def test_a_silent_model_keeps_the_run_queued_until_it_is_back(product: Product, person: Person) -> None:
    product.model.stop()
    _, run = call(product, person, "POST", "/api/v1/runs", {"input": "Are you there?"})
    eventually(lambda: _state(product, person, run)["reason"] == "model_unavailable", "the run waits")
    product.model.start()
    run = eventually(lambda: _ended(product, person, run), "the run has ended")
    assert run["status"] == "completed"


def test_a_killed_worker_loses_nothing(product: Product, person: Person) -> None:
    product.model.token_delay = 0.05
    _, run = call(product, person, "POST", "/api/v1/runs", {"input": "Tell a long story"})
    eventually(lambda: _events(product, person, run, "answer"), "the answer has begun")
    product.end("worker")
    product.model.token_delay = 0.0
    product.restore()
    run = eventually(lambda: _ended(product, person, run), "another worker has finished it")
    assert run["status"] == "completed"
    starts = [e["data"]["attempt"] for e in _events(product, person, run, "answer") if e["data"]["status"] == "start"]
    assert starts == [1, 2]


def _state(product: Product, person: Person, run: dict[str, Any]) -> dict[str, Any]:
    state: dict[str, Any] = call(product, person, "GET", f"/api/v1/runs/{run['id']}")[1]
    return state


def _ended(product: Product, person: Person, run: dict[str, Any]) -> dict[str, Any] | None:
    state = _state(product, person, run)
    return state if state["ended_at"] else None


def _events(product: Product, person: Person, run: dict[str, Any], channel: str) -> list[dict[str, Any]]:
    events = call(product, person, "GET", f"/api/v1/runs/{run['id']}/events")[1]["items"]
    return [e for e in events if e["channel"] == channel]
