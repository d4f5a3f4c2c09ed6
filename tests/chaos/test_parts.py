"""Each part goes away in the middle of twenty runs and comes back: every run reaches its right end."""

from collections.abc import Callable

import pytest

from tests.chaos.installation import Chaos
from tests.product import Person, eventually

RUNS = 20
STORY = " ".join(f"word{n}" for n in range(400))


def _without_web(chaos: Chaos) -> None:
    chaos.end("web")
    eventually(lambda: not chaos.is_ready(), "web is gone")


def _without_worker(chaos: Chaos) -> None:
    chaos.end("worker")
    held = "SELECT count(*) FROM conversations_run WHERE status = 'running' AND lease_expires_at > now()"
    eventually(lambda: chaos.sql(held) == [(0,)], "its leases have run out")


def _without_model(chaos: Chaos) -> None:
    chaos.model.stop()
    waiting = "SELECT count(*) FROM conversations_run WHERE reason = 'model_unavailable' AND ended_at IS NULL"
    eventually(lambda: chaos.sql(waiting)[0][0] > 0, "runs wait for their model", 40)


def _without(part: str, complaint: str) -> Callable[[Chaos], None]:
    def away(chaos: Chaos) -> None:
        before = chaos.log("worker").count(complaint)
        chaos.down(part)
        eventually(lambda: chaos.log("worker").count(complaint) > before, "the worker has noticed")
        chaos.up(part)

    return away


OUTAGES = {
    "PostgreSQL": _without("postgres", "database does not answer"),
    "Valkey": _without("valkey", "live channel does not answer"),
    "model": _without_model,
    "worker": _without_worker,
    "web": _without_web,
}


@pytest.mark.parametrize("part", OUTAGES)
def test_twenty_runs_reach_their_ends(chaos: Chaos, person: Person, part: str) -> None:
    tool = "append_line" if part == "worker" else "append_once"  # a dead worker's call may be repeated, or asked about
    texts = ["Tell a long story" if n % 2 else f"use {tool} {tool} on {part}-{n}" for n in range(RUNS)]
    chaos.model.token_delay = 0.01
    runs = [chaos.ask(person, text)["id"] for text in texts]
    eventually(lambda: any(chaos.events(run, "answer", "start") for run in runs), "answers have begun")
    OUTAGES[part](chaos)
    chaos.restore()
    ended = [chaos.ended(person, run, 60) for run in runs]
    assert [run["status"] for run in ended] == ["completed"] * RUNS
    for n, run in enumerate(ended):
        assert run["answer"] == (STORY if n % 2 else f"Done with {part}-{n}.")
        if n % 2 == 0:
            lines = chaos.lines(f"{part}-{n}")
            assert set(lines) == {"react/1/tool/0", "react/1/tool/1"}
            assert len(lines) == 2 or tool == "append_line"
