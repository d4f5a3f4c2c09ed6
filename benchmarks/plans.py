"""What a plan costs beside its tools: side by side, per step, and when it is taken up again.

    python benchmarks/plans.py

Models and tools are local; the tools of the first figure wait 300 ms each. Exits with 1 when an aim is missed, which
says nothing where other processes keep the machine busy: the load is printed with the figures.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from typing import Any

from agentapp.engine import EffectClass, MemoryJournal, ReActAgent, ReWOOAgent, ScriptedChatModel, Tool, ToolCall
from agentapp.engine.limits import Spent
from agentapp.engine.plan_check import validate_plan
from agentapp.engine.plans import Plan, StepOutcome
from agentapp.engine.scheduler import Done, Scheduler
from agentapp.engine.scope import Scope

PARALLEL, WAIT, STEPS, REPEATS = 8, 0.3, 1_000, 7


def planned(count: int, *, chained: bool = False) -> list[dict[str, Any]]:
    return [
        {
            "id": f"E{n}",
            "task": f"step {n}",
            "tool_name": "wait",
            "tool_args": {"n": n},
            "depends_on": [f"E{n - 1}"] if chained and n > 1 else [],
        }
        for n in range(1, count + 1)
    ]


def tool(seconds: float, made: list[int]) -> Tool:
    async def run(n: int) -> str:
        made.append(n)
        await asyncio.sleep(seconds)
        return f"result {n}"

    return Tool("wait", "Waits.", {"type": "object"}, run, effect_class=EffectClass.READ)


async def side_by_side() -> float:
    """Seconds from the first step's start to the last one's end, through the whole agent."""
    times: list[float] = []
    told = lambda event: times.append(time.perf_counter()) if event.channel == "plan" else None  # noqa: E731
    model = ScriptedChatModel([ToolCall("p", "plan", {"steps": planned(PARALLEL)}), "ok"])
    await ReWOOAgent(model, [tool(WAIT, [])], emit=told).run("q")
    return times[-1] - times[1]


async def one_by_one() -> float:
    begun = time.perf_counter()
    calls = [ToolCall("c", "wait", {"n": n}) for n in range(PARALLEL)]
    await ReActAgent(ScriptedChatModel([*calls, "ok"]), [tool(WAIT, [])], checklist_from=0).run("q")
    return time.perf_counter() - begun


async def per_step(*, chained: bool) -> float:
    """CPU seconds of validator and scheduler for a step that does nothing, with its two records and two events."""

    async def nothing(*_: Any) -> Done:
        return Done(StepOutcome("ok", "done"))

    raw, registry = planned(STEPS, chained=chained), [tool(0, [])]
    begun = time.process_time()
    steps = validate_plan(raw, registry, max_steps=STEPS)
    plan = Plan("rewoo", 1, steps)
    scope = Scope(MemoryJournal(), lambda event: None, "plan/1")
    await Scheduler(plan, scope, nothing, Spent(ReWOOAgent(ScriptedChatModel([])).limits), time.monotonic, 5, 600).run()
    assert len(plan.outcomes) == STEPS
    return (time.process_time() - begun) / STEPS


async def resume() -> tuple[int, int]:
    """Kills a plan of twelve steps after each of its records; how often it was resumed, and bodies run twice."""
    made: list[int] = []
    replies = [ToolCall("p", "plan", {"steps": planned(12, chained=True)}), "ok"]
    whole = MemoryJournal()
    result = await ReWOOAgent(ScriptedChatModel(replies), [tool(0, made)], journal=whole).run("q")
    records = json.loads(json.dumps(whole.records))
    again = 0
    for length in range(len(records) + 1):
        prefix = dict(list(records.items())[:length])
        rest = replies[0 if "plan/1/llm/0" not in prefix else 1 if "answer/llm/0" not in prefix else 2 :]
        bodies: list[int] = []
        agent = ReWOOAgent(ScriptedChatModel(rest), [tool(0, bodies)], journal=MemoryJournal(prefix))
        assert (await agent.run("q")).answer == result.answer
        done = {
            record["request"]["arguments"]["n"]
            for record in list(records.values())[:length]
            if record["kind"] == "tool"
        }
        again += len(done & set(bodies))
    return len(records) + 1, again


async def main() -> int:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    wall = [await side_by_side() for _ in range(REPEATS)]
    row = await one_by_one()
    best = min(wall)
    print(
        f"{PARALLEL} tools of 300 ms: worker {best:.3f} s (median {statistics.median(wall):.3f}), in a row {row:.2f} s"
    )
    costs = [min([await per_step(chained=chained) for _ in range(REPEATS)]) for chained in (False, True)]
    print(
        f"validator and scheduler, CPU a step of {STEPS}: {costs[0] * 1e3:.3f} ms free, {costs[1] * 1e3:.3f} in a row"
    )
    kills, twice = await resume()
    print(f"plan of 12 steps resumed after {kills} kills: {twice} bodies ran twice")
    missed = [name for name, bad in (("wall", best > 0.36), ("step", max(costs) > 0.0002), ("resume", twice)) if bad]
    print(f"missed: {', '.join(missed)}" if missed else "all aims met")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
