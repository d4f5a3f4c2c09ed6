"""Each part goes away for 20 s in the middle of twenty runs: every run reaches its right end."""

import time
from collections.abc import Callable

import pytest

from tests.chaos.installation import Chaos
from tests.product import Person, eventually

RUNS = 20
OUTAGE_SECONDS = 20.0
STORY = " ".join(f"word{n}" for n in range(400))


def _without(part: str, complaint: str) -> Callable[[Chaos], None]:
    def away(chaos: Chaos) -> None:
        before = chaos.log("worker").count(complaint)
        chaos.down(part)
        eventually(lambda: chaos.log("worker").count(complaint) > before, "the worker has noticed")

    return away


TAKE_AWAY: dict[str, Callable[[Chaos], None]] = {
    "PostgreSQL": _without("postgres", "database does not answer"),
    "Valkey": _without("valkey", "live channel does not answer"),
    "model": lambda chaos: chaos.model.stop(),
    "worker": lambda chaos: chaos.end("worker"),
    "web": lambda chaos: chaos.end("web"),
}
BRING_BACK: dict[str, Callable[[Chaos], None]] = {
    "PostgreSQL": lambda chaos: chaos.up("postgres"),
    "Valkey": lambda chaos: chaos.up("valkey"),
}


@pytest.mark.parametrize("part", TAKE_AWAY)
def test_twenty_runs_reach_their_ends(chaos: Chaos, person: Person, part: str) -> None:
    tool = "append_line" if part == "worker" else "append_once"  # a dead worker's call may be repeated, or asked about
    texts = ["Tell a long story" if n % 2 else f"use {tool} {tool} on {part}-{n}" for n in range(RUNS)]
    chaos.model.token_delay = 0.01
    runs = [chaos.ask(person, text)["id"] for text in texts]
    eventually(lambda: any(chaos.events(run, "answer", "start") for run in runs), "answers have begun")
    over = time.monotonic() + OUTAGE_SECONDS
    TAKE_AWAY[part](chaos)
    eventually(lambda: time.monotonic() > over, "the outage is over", 2 * OUTAGE_SECONDS)
    BRING_BACK.get(part, lambda _: None)(chaos)
    chaos.restore()
    ended = [chaos.ended(person, run, 90) for run in runs]
    assert [run["status"] for run in ended] == ["completed"] * RUNS
    for n, run in enumerate(ended):
        assert run["answer"] == (STORY if n % 2 else f"Done with {part}-{n}.")
        if n % 2 == 0:
            lines = chaos.lines(f"{part}-{n}")
            assert set(lines) == {"react/1/tool/0", "react/1/tool/1"}
            assert len(lines) == 2 or tool == "append_line"
