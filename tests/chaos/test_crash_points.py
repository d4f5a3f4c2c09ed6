"""A process is killed at each point where it hurts; the run goes on, and what was done is not done again."""

import http.client
import urllib.error
from typing import Any
from uuid import UUID, uuid5

import pytest

from tests.chaos.installation import Chaos, died
from tests.conversations.test_main_job import call
from tests.product import Person, eventually

CONNECTION_LOST = (urllib.error.URLError, ConnectionError, http.client.HTTPException)


def _crash(chaos: Chaos, person: Person, point: str, text: str) -> dict[str, Any]:
    worker = chaos.die_at(point)
    run = chaos.ask(person, text)
    died(worker)
    chaos.restore()
    return run


@pytest.mark.parametrize("point", ["K2", "K4", "K5", "K8", "K12"])
def test_an_effect_happens_once_though_the_worker_dies_around_it(chaos: Chaos, person: Person, point: str) -> None:
    run = _crash(chaos, person, point, f"use append_once on {point}")
    ended = chaos.ended(person, run["id"])
    assert (ended["status"], ended["answer"]) == ("completed", f"Done with {point}.")
    assert chaos.lines(point) == ["react/1/tool/0"]


@pytest.mark.parametrize(("point", "times"), [("K6", 1), ("K7", 2)])
def test_a_repeatable_effect_is_repeated_under_its_own_key(
    chaos: Chaos, person: Person, point: str, times: int
) -> None:
    run = _crash(chaos, person, point, f"use append_line on again-{point}")
    assert chaos.ended(person, run["id"])["status"] == "completed"
    assert chaos.lines(f"again-{point}") == ["react/1/tool/0"] * times
    key = str(uuid5(UUID(run["id"]), "react/1/tool/0"))
    assert chaos.lines(f"again-{point}", "keys") == [key] * times


@pytest.mark.parametrize(("point", "outcome", "times"), [("K6", "retry", 1), ("K7", "done", 1)])
def test_in_doubt_a_person_says_whether_an_effect_happened(
    chaos: Chaos, person: Person, point: str, outcome: str, times: int
) -> None:
    run = _crash(chaos, person, point, f"use append_once on doubt-{point}")
    chaos.waiting(person, run["id"], "reconciliation")
    assert len(chaos.lines(f"doubt-{point}")) <= 1
    body = {"call": "react/1/tool/0", "outcome": outcome}
    assert call(chaos, person, "POST", f"/api/v1/runs/{run['id']}/resolve", body)[0] == 200
    assert chaos.ended(person, run["id"])["status"] == "completed"
    assert chaos.lines(f"doubt-{point}", "keys") == ["None"] * times


def test_of_three_parallel_calls_only_the_unfinished_one_runs_again(chaos: Chaos, person: Person) -> None:
    worker = chaos.die_at("K9")
    chaos.hold()
    run = chaos.ask(person, "use append_once append_once hold_line on K9")
    died(worker)
    chaos.restore()
    assert chaos.ended(person, run["id"])["status"] == "completed"
    assert sorted(chaos.lines("K9")) == ["react/1/tool/0", "react/1/tool/1", "react/1/tool/2"]


def test_a_model_call_that_was_under_way_is_made_again(chaos: Chaos, person: Person) -> None:
    chaos.model.token_delay, asked = 10.0, len(chaos.model.requests)
    run = _crash(chaos, person, "K3", "use append_once on K3")
    assert len(chaos.model.requests) > asked
    assert chaos.ended(person, run["id"])["status"] == "completed"
    assert chaos.lines("K3") == ["react/1/tool/0"]


def test_a_broken_answer_is_begun_anew_and_never_doubled(chaos: Chaos, person: Person) -> None:
    worker = chaos.die_at("K10")
    chaos.model.token_delay = 0.01
    run = chaos.ask(person, "Tell a long story")
    died(worker)
    chaos.restore()
    ended = chaos.ended(person, run["id"])
    assert ended["answer"] == " ".join(f"word{n}" for n in range(400))
    assert chaos.events(run["id"], "answer", "start") == 2


def test_a_message_whose_web_process_died_before_the_enqueue_is_answered(chaos: Chaos, person: Person) -> None:
    web = chaos.die_at("K1", "web")
    eventually(chaos.is_ready, "web is ready")
    with pytest.raises(CONNECTION_LOST):
        chaos.ask(person, "use append_once on K1")
    died(web)
    chaos.restore()
    ((run,),) = chaos.sql("SELECT id FROM conversations_run WHERE user_id = %s", person.id)
    assert chaos.ended(person, str(run))["status"] == "completed"
    assert chaos.lines("K1") == ["react/1/tool/0"]


def test_a_decision_whose_web_process_died_before_the_enqueue_counts(chaos: Chaos, person: Person) -> None:
    chaos.execute("UPDATE tools_admin_tool SET approval = 'always' WHERE name = 'append_once'")
    try:
        run = chaos.ask(person, "use append_once on K11")
        chaos.waiting(person, run["id"], "approval")
        (approval,) = call(chaos, person, "GET", "/api/v1/approvals")[1]["items"]
        web = chaos.die_at("K11", "web")
        eventually(chaos.is_ready, "web is ready")
        with pytest.raises(CONNECTION_LOST):
            call(chaos, person, "POST", f"/api/v1/approvals/{approval['id']}", {"decision": "approve"})
        died(web)
        chaos.restore()
        assert chaos.ended(person, run["id"])["status"] == "completed"
        assert chaos.lines("K11") == ["react/1/tool/0"]
    finally:
        chaos.execute("UPDATE tools_admin_tool SET approval = 'never' WHERE name = 'append_once'")


def test_in_doubt_about_an_approved_call_it_runs_again_only_when_a_person_says_so(chaos: Chaos, person: Person) -> None:
    chaos.execute("UPDATE tools_admin_tool SET approval = 'always' WHERE name = 'append_once'")
    try:
        run = chaos.ask(person, "use append_once on approved")["id"]
        chaos.waiting(person, run, "approval")
        (approval,) = call(chaos, person, "GET", "/api/v1/approvals")[1]["items"]
        worker = chaos.die_at("K6")
        assert call(chaos, person, "POST", f"/api/v1/approvals/{approval['id']}", {"decision": "approve"})[0] == 200
        died(worker)
        chaos.restore()
        chaos.waiting(person, run, "reconciliation")
        assert chaos.lines("approved") == []
        body = {"call": "react/1/tool/0", "outcome": "retry"}
        assert call(chaos, person, "POST", f"/api/v1/runs/{run}/resolve", body)[0] == 200
        assert chaos.ended(person, run)["status"] == "completed"
        assert chaos.lines("approved") == ["react/1/tool/0"]
        states = "SELECT state FROM conversations_approval WHERE run_id = %s"
        assert chaos.sql(states, run) == [("consumed",)]
    finally:
        chaos.execute("UPDATE tools_admin_tool SET approval = 'never' WHERE name = 'append_once'")


def test_three_deaths_at_the_same_point_end_the_run_and_keep_its_record(chaos: Chaos, person: Person) -> None:
    run = {"id": ""}
    for death in range(3):
        worker = chaos.die_at("K6") if death == 0 else chaos.spawn("worker", chaos.commands["worker"], CRASH_AT="K6")
        run = run if run["id"] else chaos.ask(person, "use append_line on loop")
        died(worker)
    chaos.restore()
    ended = chaos.ended(person, run["id"])
    assert (ended["status"], ended["reason"]) == ("failed", "crash_loop")
    assert chaos.lines("loop") == []
    calls = call(chaos, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
    assert "react/1/llm" in [made["key"] for made in calls]
