"""A planned loop can be taken up again at any point: nothing recorded happens again, and it ends the same.

P-38, design: the trace is the checkpoint.
"""

import json
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentapp.engine import (
    Allow,
    BadModelRequest,
    DAGAgent,
    EffectClass,
    InterruptQueue,
    ModelRegistry,
    PlanExecuteAgent,
    ReActAgent,
    ReWOOAgent,
    RunSuspended,
    ScriptedChatModel,
    Tool,
    ToolCall,
)

from .planned import NO_WAIT, goal, judged, plan, step
from .world import WatchedJournal, clock, current_key, is_text, recorded_events

KINDS = ["rewoo", "plan_execute", "dag"]
TOOLS = ["echo", "bad", "pay", "helper"]


class World:
    """Models and tools whose behaviour follows from the place in the run at which they are asked."""

    def __init__(self, kind, drawn, records=None, *, suspends=False):
        self.kind, self.drawn, self.suspends = kind, drawn, suspends
        self.queue = InterruptQueue()
        self.puts, self.events, self.bodies = [], [], Counter()
        self.journal = WatchedJournal(records)
        child = ReActAgent(ScriptedChatModel([self.reply] * 200), [self.tool("inner")], clock=clock, retry=NO_WAIT)
        tools = [self.tool(name) for name in ("echo", "bad", "tell")]
        tools += [self.tool("pay", EffectClass.ONCE), child.as_tool("helper", "Helps.")]
        options = {
            "journal": self.journal,
            "emit": self.events.append,
            "gate": self.gate,
            "clock": clock,
            "retry": NO_WAIT,
            "concurrency": drawn["concurrency"],
        }
        model = ScriptedChatModel([self.reply] * 500)
        if kind == "dag":
            registry = ModelRegistry()
            registry.register(model)
            self.agent: Any = DAGAgent(registry, tools, **options)
        elif kind == "rewoo":
            self.agent = ReWOOAgent(model, tools, on_error=drawn["policy"], **options)
        else:
            self.agent = PlanExecuteAgent(model, tools, on_error="replan", **options)

    def tool(self, name, effect_class=EffectClass.READ):
        async def run(**arguments):
            key = current_key.get()
            self.bodies[key] += 1
            if name == "bad":
                raise ValueError(f"no {key}")
            if name == "tell":
                self.puts.append((key, "hurry"))
                self.queue.put("hurry", id=f"{key} hurry")
            return f"{name} at {key}"

        return Tool(name, f"The tool {name}.", {"type": "object"}, run, effect_class=effect_class)

    async def gate(self, tool, arguments, key):
        if self.suspends and tool.name in ("echo", "inner"):
            raise RunSuspended("approval", key)
        return Allow()

    def reply(self, messages, **request):
        """What a model says, by the key of the call that asks it."""
        key = current_key.get()
        if key.startswith(tuple(self.drawn["refused"])):
            return BadModelRequest(f"no {key}")
        if found := re.fullmatch(r"plan/(\d)/llm/\d", key):
            return self.plan(int(found.group(1)))
        if key.startswith("analysis/"):
            return judged(self.drawn["achieved"], 0.2, f"judged at {key}")
        if found := re.fullmatch(r"plan/(\d)/(\d+)/react/1/llm", key):
            names = self.names(int(found.group(1)))
            name = names[(int(found.group(2)) - 1) % len(names)]
            arguments = {"request": "look"} if name == "helper" else {"n": int(found.group(1))}
            return ToolCall("c", name, arguments) if name else f"said at {key}"
        if key.endswith("/agent/react/1/llm"):
            return ToolCall("c", "inner", {})
        return f"said at {key}"

    def names(self, version):
        steps = self.drawn["plans"][(version - 1) % len(self.drawn["plans"])]
        return [name for name, _ in steps]

    def plan(self, version):
        steps = self.drawn["plans"][(version - 1) % len(self.drawn["plans"])]
        made = []
        for n, (name, after) in enumerate(steps, 1):
            ids = [f"E{m}" for m in sorted({1 + a % n for a in after}) if m < n]
            arguments = {"request": "look"} if name == "helper" else {"n": version, "x": "".join(f"#{i}" for i in ids)}
            if name == "helper":
                ids = []
            made.append(step(f"E{n}", name, arguments, ids) if self.kind == "rewoo" else goal(f"E{n}", ids))
        return plan(*made)

    async def work(self):
        return await self.agent.run("the question", interrupts=self.queue)

    def durable_events(self):
        return Counter(json.dumps([e.channel, e.data]) for e in self.events if not is_text(e))


def steps_with(names):
    return st.lists(st.tuples(st.sampled_from(names), st.lists(st.integers(0, 3), max_size=2)), min_size=1, max_size=4)


def drawn_with(names, concurrency):
    return st.fixed_dictionaries(
        {
            "plans": st.lists(steps_with(names), min_size=1, max_size=2),
            "achieved": st.booleans(),
            "policy": st.sampled_from(["to_solver", "retry"]),
            "concurrency": st.just(concurrency),
            "refused": st.sets(
                st.sampled_from(
                    ["plan/1/llm/0", "plan/1/llm/", "plan/2/llm/", "plan/1/2/react/2/llm", "analysis/1/llm/", "answer/"]
                ),
                max_size=2,
            ),
        }
    )


# With an interrupt it is a matter of time which steps have begun; one at a time it is not.
DRAWN = drawn_with(TOOLS, 3) | drawn_with([*TOOLS, "tell"], 1)


def after(whole, records, length, kind, drawn):
    """A world in which the first records of a whole run have been made."""
    prefix = json.loads(json.dumps(dict(list(records.items())[:length])))
    world = World(kind, drawn, dict(prefix))
    seen = {item["id"] for r in prefix.values() for item in (r.get("result") or {}).get("interrupts", ())}
    for key, text in whole.puts:
        if "result" in prefix.get(key, {}) and f"{key} {text}" not in seen:
            world.queue.put(text, id=f"{key} {text}")
    return prefix, world


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=DRAWN, data=st.data())
async def test_a_plan_resumed_over_any_prefix_repeats_nothing_and_ends_the_same(kind, drawn, data):
    whole = World(kind, drawn)
    result = await whole.work()
    records = json.loads(json.dumps(whole.journal.records))
    length = data.draw(st.integers(0, len(records)))
    prefix, resumed = after(whole, records, length, kind, drawn)
    again = await resumed.work()
    assert (again, again.usage) == (result, result.usage)
    assert json.loads(json.dumps(resumed.journal.records)) == records
    ran = {key for what, key in resumed.journal.log if what == "ran"}
    assert not ran & {key for key, record in prefix.items() if "result" in record}
    new = {key: record for key, record in records.items() if key not in prefix}
    assert resumed.durable_events() >= recorded_events(new)
    assert not resumed.durable_events() & recorded_events(prefix) - recorded_events(new)
    if length == len(records):
        assert (ran, resumed.events) == (set(), [])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_plan_of_twelve_steps_goes_on_after_a_kill_at_each_step(kind):
    drawn = {
        "plans": [[("echo", [n % 3]) for n in range(8 if kind == "plan_execute" else 12)]],
        "achieved": True,
        "policy": "to_solver",
        "concurrency": 3,
        "refused": set(),
    }
    whole = World(kind, drawn)
    result = await whole.work()
    records = json.loads(json.dumps(whole.journal.records))
    for length in range(len(records) + 1):
        _, resumed = after(whole, records, length, kind, drawn)
        assert await resumed.work() == result
        done = sum(record["kind"] == "tool" for record in list(records.values())[:length])
        assert resumed.bodies.total() == len(drawn["plans"][0]) - done


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [["echo", "pay", "echo"], ["helper", "echo"]])
async def test_a_plan_that_waits_for_a_person_repeats_nothing_when_it_goes_on(kind, names):
    drawn = {
        "plans": [[(name, []) for name in names]],
        "achieved": True,
        "policy": "to_solver",
        "concurrency": 3,
        "refused": set(),
    }
    waiting = World(kind, drawn, suspends=True)
    with pytest.raises(RunSuspended):
        await waiting.work()
    resumed = World(kind, drawn, waiting.journal.records)
    result = await resumed.work()
    done_before = {key for what, key in waiting.journal.log if what == "done"}
    assert not done_before & {key for what, key in resumed.journal.log if what == "ran"}
    assert result.stop_reason == "final_answer"
    assert all(outcome.is_ok for outcome in result.plan.outcomes.values())
    complete = World(kind, drawn, dict(resumed.journal.records))
    assert await complete.work() == result
    assert (complete.journal.log, complete.events) == ([], [])


@pytest.mark.parametrize("kind", KINDS)
async def test_the_record_alone_tells_calls_arguments_and_results_in_order(kind):  # P-58
    drawn = {
        "plans": [[("echo", []), ("bad", []), ("pay", [])]],
        "achieved": True,
        "policy": "to_solver",
        "concurrency": 1,
        "refused": set(),
    }
    world = World(kind, drawn)
    result = await world.work()
    calls = [
        (r["request"]["name"], r["request"]["arguments"], r["result"]["content"], r["result"]["elapsed"])
        for r in world.journal.records.values()
        if r["kind"] == "tool"
    ]
    told = [(s.tool_name, s.arguments, s.observation or s.error, s.elapsed) for s in result.tool_steps]
    assert calls == told
