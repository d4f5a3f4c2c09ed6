"""A worker that comes back too late, a message that comes too often, a worker that is asked to go."""

import signal
import time
from typing import Any

import pytest
import redis
from celery import Celery

from agentapp.environment import celery_url
from tests.chaos.installation import Chaos, died
from tests.product import AS_SHIPPED, Person, eventually


def _record(chaos: Chaos, run: str) -> list[Any]:
    """Everything that a late worker could change."""
    rows = [
        chaos.sql(f"SELECT * FROM conversations_{table} WHERE run_id = %s ORDER BY id", run)  # noqa: S608 - literals
        for table in ("call", "runevent", "message")
    ]
    with redis.Redis.from_url(chaos.environment["REDIS_URL"], protocol=2) as live:
        return [*rows, chaos.sql("SELECT * FROM conversations_run WHERE id = %s", run), live.xrange(f"run:{run}")]


def _overtaken(chaos: Chaos, person: Person, run: str) -> tuple[Any, list[Any]]:
    """Stops the worker in its tracks; another one brings the run to its end."""
    zombie = chaos.processes.pop("worker")
    zombie.send_signal(signal.SIGSTOP)
    chaos.restore()
    assert chaos.ended(person, run)["status"] == "completed"
    return zombie, _record(chaos, run)


def _works_again(chaos: Chaos, person: Person, zombie: Any) -> None:
    """The late worker is back in business: it answers another question all alone."""
    chaos.end("worker")
    chaos.processes["worker"] = zombie
    zombie.send_signal(signal.SIGCONT)
    assert chaos.ended(person, chaos.ask(person, "Are you back?")["id"])["status"] == "completed"


def test_a_worker_back_from_a_long_pause_writes_no_result(chaos: Chaos, person: Person) -> None:
    chaos.hold()
    run = chaos.ask(person, "use hold_line on zombie")["id"]
    eventually(chaos.is_holding, "the tool runs")
    zombie, record = _overtaken(chaos, person, run)
    written = len(chaos.lines("zombie"))
    _works_again(chaos, person, zombie)
    eventually(lambda: len(chaos.lines("zombie")) > written, "the late tool has come to its end too")
    assert _record(chaos, run) == record


def test_a_worker_back_from_a_long_pause_says_nothing(chaos: Chaos, person: Person) -> None:
    chaos.model.token_delay = 0.02
    run = chaos.ask(person, "Tell a long story")["id"]
    eventually(lambda: chaos.events(run, "answer", "start"), "the answer has begun")
    zombie, record = _overtaken(chaos, person, run)
    _works_again(chaos, person, zombie)
    assert _record(chaos, run) == record
    assert chaos.events(run, "answer", "start") == 2


def _broker(chaos: Chaos) -> redis.Redis:
    """Where Celery keeps its queues, for a plain client."""
    return redis.Redis.from_url(chaos.environment["REDIS_URL"].split("?")[0] + "?db=2", protocol=2)


def test_of_fifty_messages_for_one_run_one_is_executed(chaos: Chaos, person: Person) -> None:
    chaos.end("worker")
    run = chaos.ask(person, "use append_line on fifty")["id"]
    with Celery(broker=celery_url(chaos.environment["REDIS_URL"])) as sender:
        for _ in range(49):
            sender.send_task("conversations.tasks.execute_run", args=[run])
    chaos.spawn("second", chaos.commands["worker"])
    chaos.restore()
    try:
        assert chaos.ended(person, run)["status"] == "completed"
        with _broker(chaos) as broker:
            eventually(lambda: broker.llen("celery") == 0, "every message was delivered")
        assert chaos.lines("fifty") == ["react/1/tool/0"]
        claims = "SELECT count(*) FROM conversations_runevent WHERE run_id = %s AND key LIKE 'run/running/%%'"
        assert chaos.sql(claims, run) == [(1,)]
    finally:
        chaos.end("second")


def test_with_default_settings_nothing_is_left_lying_for_twenty_seconds(chaos: Chaos, person: Person) -> None:
    chaos.end("worker")
    worker = chaos.spawn("worker", chaos.commands["worker"], CRASH_AT="K2", **AS_SHIPPED)
    orphaned = chaos.ask(person, "Is anybody there?")["id"]
    died(worker)
    lost = chaos.ask(person, "Did you get this?")["id"]
    with _broker(chaos) as broker:
        broker.delete("celery")
    chaos.spawn("worker", chaos.commands["worker"], **AS_SHIPPED)
    for run in (orphaned, lost):
        assert chaos.ended(person, run, 20)["status"] == "completed"
    chaos.end("worker")


def test_an_idle_worker_goes_at_once(chaos: Chaos, person: Person) -> None:
    assert chaos.ended(person, chaos.ask(person, "Are you awake?")["id"])["status"] == "completed"
    worker, said, begun = chaos.processes["worker"], len(chaos.log("worker")), time.monotonic()
    chaos.end("worker", signal.SIGTERM)
    assert worker.returncode == 0
    assert time.monotonic() - begun < float(chaos.environment.get("SHUTDOWN_GRACE_SECONDS", "20"))
    assert "Traceback" not in chaos.log("worker")[said:]


def test_a_worker_that_is_asked_to_go_brings_its_runs_to_an_end_first(chaos: Chaos, person: Person) -> None:
    chaos.hold()
    run = chaos.ask(person, "use hold_once on drain")["id"]
    eventually(chaos.is_holding, "the tool runs")
    worker = chaos.processes.pop("worker")
    worker.send_signal(signal.SIGTERM)
    eventually(lambda: "shutdown" in chaos.log("worker").lower(), "it was asked")
    (chaos.effects / "hold").unlink()
    worker.wait(60)
    assert chaos.ended(person, run)["status"] == "completed"
    assert chaos.lines("drain") == ["react/1/tool/0"]


@pytest.mark.parametrize(("tool", "after"), [("hold_line", "completed"), ("hold_once", "waiting")])
def test_what_is_not_done_in_time_goes_back_into_the_queue(chaos: Chaos, person: Person, tool: str, after: str) -> None:
    chaos.end("worker")
    worker = chaos.spawn("worker", chaos.commands["worker"], SHUTDOWN_GRACE_SECONDS="0.5")
    chaos.hold()
    run = chaos.ask(person, f"use {tool} on late-{tool}")["id"]
    eventually(chaos.is_holding, "the tool runs")
    worker.send_signal(signal.SIGTERM)
    eventually(lambda: chaos.run(person, run)["status"] == "queued", "the run is back in the queue")
    assert worker.wait(60) == 0  # though its tool hangs in a thread
    chaos.restore()
    state = eventually(
        lambda: (r := chaos.run(person, run))["status"] == after and r, f"another worker has made it {after}", 40
    )
    assert state["reason"] in ("final_answer", "reconciliation")
    assert chaos.sql("SELECT crashes FROM conversations_run WHERE id = %s", run) == [(0,)]
