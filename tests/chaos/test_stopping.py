"""Stop stops: from any state, at any web process; every call and step gets an end, nothing begins afterwards."""

import time
from typing import Any

import pytest

from tests.chaos.installation import Chaos
from tests.conversations.test_main_job import call
from tests.product import Person, eventually

BOUND_SECONDS = 2.0


def _stop(chaos: Chaos, person: Person, run: str) -> dict[str, Any]:
    """The run after a stop, which must be felt within two seconds."""
    begun = time.monotonic()
    assert call(chaos, person, "POST", f"/api/v1/runs/{run}/cancel")[0] == 200
    ended = eventually(lambda: (r := chaos.run(person, run))["ended_at"] and r, "the run is stopped")
    assert time.monotonic() - begun < BOUND_SECONDS
    assert (ended["status"], ended["reason"]) == ("cancelled", "user")
    chaos.check(run)
    return ended


def _calls(chaos: Chaos, run: str) -> dict[str, str]:
    return dict(chaos.sql("SELECT key, state FROM conversations_call WHERE run_id = %s AND kind != 'clock'", run))


def test_a_queued_run(chaos: Chaos, person: Person) -> None:
    chaos.end("worker")
    run, asked = chaos.ask(person, "Hello")["id"], len(chaos.model.requests)
    _stop(chaos, person, run)
    chaos.restore()
    assert chaos.ended(person, chaos.ask(person, "Next")["id"])["status"] == "completed"
    assert len(chaos.model.requests) == asked + 1


def test_a_model_call(chaos: Chaos, person: Person) -> None:
    chaos.model.brain = lambda _: {
        "calls": [{"name": "append_line", "arguments": {"text": str(n)}} for n in range(400)]
    }
    chaos.model.token_delay, hangups, asked = 0.05, chaos.model.hangups, len(chaos.model.requests)
    run = chaos.ask(person, "Do a lot")["id"]
    eventually(lambda: len(chaos.model.requests) > asked, "the model is asked")
    _stop(chaos, person, run)
    eventually(lambda: chaos.model.hangups > hangups, "the model's stream is closed", BOUND_SECONDS)
    assert _calls(chaos, run) == {"react/1/llm": "cancelled"}


def test_a_streamed_answer(chaos: Chaos, person: Person) -> None:
    chaos.model.token_delay, hangups = 0.05, chaos.model.hangups
    run = chaos.ask(person, "Tell a long story")["id"]
    eventually(lambda: chaos.events(run, "answer", "start"), "the answer has begun")
    assert _stop(chaos, person, run)["answer"].startswith("word0")
    eventually(lambda: chaos.model.hangups > hangups, "the model's stream is closed", BOUND_SECONDS)
    assert chaos.sql("SELECT partial FROM conversations_message WHERE run_id = %s", run) == [(True,)]


@pytest.mark.parametrize("tool", ["hold_line", "hold_once"])
def test_a_tool(chaos: Chaos, person: Person, tool: str) -> None:
    chaos.hold()
    run = chaos.ask(person, f"use {tool} append_line on stop-{tool}")["id"]
    eventually(lambda: chaos.is_holding() and "react/1/tool/1" in _calls(chaos, run), "one is done, one runs")
    _stop(chaos, person, run)
    assert _calls(chaos, run) == {
        "react/1/llm": "succeeded",
        "react/1/tool/0": "cancelled",
        "react/1/tool/1": "succeeded",
    }
    ((error,),) = chaos.sql("SELECT error FROM conversations_call WHERE run_id = %s AND state = 'cancelled'", run)
    assert "may have happened" in error


def test_trying_a_stopped_run_again_repeats_no_effect_that_may_have_happened(chaos: Chaos, person: Person) -> None:
    chaos.hold()
    run = chaos.ask(person, "use hold_once on stopped")["id"]
    eventually(chaos.is_holding, "the tool runs")
    _stop(chaos, person, run)
    again = call(chaos, person, "POST", f"/api/v1/runs/{run}/retry")[1]["id"]
    (chaos.effects / "hold").unlink()
    chaos.waiting(person, again, "reconciliation")
    eventually(lambda: chaos.lines("stopped"), "the tool of the stopped run came to its end")
    body = {"call": "react/1/tool/0", "outcome": "done"}
    assert call(chaos, person, "POST", f"/api/v1/runs/{again}/resolve", body)[0] == 200
    assert chaos.ended(person, again)["status"] == "completed"
    assert len(chaos.lines("stopped")) == 1


def test_a_run_that_waits_for_its_model(chaos: Chaos, person: Person) -> None:
    chaos.model.stop()
    run = chaos.ask(person, "Are you there?")["id"]
    eventually(lambda: chaos.run(person, run)["reason"] == "model_unavailable", "the run waits for its model")
    _stop(chaos, person, run)


def test_a_run_whose_worker_is_dead(chaos: Chaos, person: Person) -> None:
    chaos.hold()
    run = chaos.ask(person, "use hold_line on dead")["id"]
    eventually(chaos.is_holding, "the tool runs")
    chaos.end("worker")
    expired = "SELECT lease_expires_at < now() FROM conversations_run WHERE id = %s"
    eventually(lambda: chaos.sql(expired, run) == [(True,)], "its lease has run out")
    _stop(chaos, person, run)


def test_without_the_live_channel_the_heartbeat_brings_the_stop(chaos: Chaos, person: Person) -> None:
    chaos.model.token_delay = 0.05
    run = chaos.ask(person, "Tell a long story")["id"]
    eventually(lambda: chaos.events(run, "answer", "start"), "the answer has begun")
    chaos.down("valkey")
    try:
        assert call(chaos, person, "POST", f"/api/v1/runs/{run}/cancel")[0] == 200
        ended = eventually(lambda: (r := chaos.run(person, run))["ended_at"] and r, "the run is stopped", 10)
    finally:
        chaos.up("valkey")
    assert (ended["status"], ended["reason"]) == ("cancelled", "user")
    chaos.check(run)


def test_at_the_other_web_process(chaos: Chaos, person: Person) -> None:
    chaos.model.token_delay = 0.05
    run = chaos.ask(person, "Tell a long story")["id"]
    eventually(lambda: chaos.events(run, "answer", "start"), "the answer has begun")
    with chaos.another_web() as other:
        assert call(other, person, "POST", f"/api/v1/runs/{run}/cancel")[0] == 200
        ended = eventually(lambda: (r := chaos.run(person, run))["ended_at"] and r, "stopped", BOUND_SECONDS)
    assert ended["status"] == "cancelled"


def _deaf_worker(chaos: Chaos, person: Person, text: str) -> str:
    """A run in a tool, stopped by its flag alone: the worker's next heartbeat is far away, and nobody wakes it."""
    chaos.end("worker")
    chaos.spawn("worker", chaos.commands["worker"], RUN_HEARTBEAT_SECONDS="60", RUN_LEASE_SECONDS="60")
    chaos.hold()
    run = chaos.ask(person, f"use hold_line on {text}")["id"]
    eventually(chaos.is_holding, "the tool runs")
    chaos.execute("UPDATE conversations_run SET cancel_requested_at = now() WHERE id = %s", run)
    return str(run)


def test_a_stop_outlives_the_worker_that_had_not_heard_of_it(chaos: Chaos, person: Person) -> None:
    run, asked = _deaf_worker(chaos, person, "unheard"), len(chaos.model.requests)
    chaos.end("worker")
    chaos.execute("UPDATE conversations_run SET lease_expires_at = now() WHERE id = %s", run)
    chaos.restore()
    ended = chaos.ended(person, run)
    assert (ended["status"], ended["reason"]) == ("cancelled", "user")
    assert (chaos.lines("unheard"), len(chaos.model.requests)) == ([], asked)


def test_after_the_flag_no_call_begins_even_if_the_worker_has_not_heard_of_it(chaos: Chaos, person: Person) -> None:
    run, asked = _deaf_worker(chaos, person, "deaf"), len(chaos.model.requests)
    (chaos.effects / "hold").unlink()
    ended = chaos.ended(person, run)
    assert (ended["status"], ended["reason"]) == ("cancelled", "user")
    assert len(chaos.model.requests) == asked
    assert _calls(chaos, run) == {"react/1/llm": "succeeded", "react/1/tool/0": "succeeded"}
    chaos.end("worker")
