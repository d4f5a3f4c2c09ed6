"""Replay: what is recorded does not happen again, and the run ends the same."""

import asyncio
import json
from typing import Any

import pytest

from agentapp.engine import (
    Allow,
    CallKind,
    Deny,
    EffectClass,
    InterruptQueue,
    MemoryJournal,
    ModelRefused,
    ReActAgent,
    ReplayMismatch,
    RunSuspended,
    ScriptedChatModel,
    Tool,
    ToolCall,
    UnknownOutcome,
    current_call_key,
    validate_pairing,
)

from .conftest import call_text, final_text

NATIVE = [ToolCall("1", "echo", {"n": 1}), [ToolCall("2", "echo", {"n": 2}), ToolCall("3", "bad", {})], "The end."]
JSON = [call_text("echo", n=1), "no object", call_text("bad"), final_text("The end.")]


def agent_over(records, replies, counting, json_mode, **options):
    tools = [counting("echo"), counting("bad", ValueError("no"))]
    abilities = {"json_mode": True, "tool_call": not json_mode}
    model = ScriptedChatModel(replies, abilities=abilities)
    journal = MemoryJournal(records)
    return ReActAgent(model, [t.tool for t in tools], journal=journal, **options), model, tools


@pytest.mark.parametrize(("script", "json_mode"), [(NATIVE, False), (JSON, True)])
async def test_resuming_over_any_prefix_repeats_nothing_and_ends_the_same(script, json_mode, counting):
    agent, _, _ = agent_over({}, script, counting, json_mode)
    whole = await agent.run("q")
    records = json.loads(json.dumps(agent.journal.records))
    for length in range(len(records) + 1):
        prefix = dict(list(records.items())[:length])
        asked = sum(record["kind"] == "llm" for record in prefix.values())
        seen = []
        agent, model, tools = agent_over(dict(prefix), script[asked:], counting, json_mode, emit=seen.append)
        result = await agent.run("q")
        ran = sum(record["kind"] == "tool" for record in records.values()) - (length - asked)
        assert sum(tool.bodies for tool in tools) == ran
        assert len(model.requests) == len(script) - asked
        for name in ("answer", "iterations", "usage", "messages", "stop_reason"):
            assert getattr(result, name) == getattr(whole, name)
        assert [s.observation for s in result.steps] == [s.observation for s in whole.steps]
        finished = sum(event.data.get("status") == "done" for event in seen)
        assert finished == len(records) - length


async def test_keys_are_positions(counting):
    agent, _, _ = agent_over({}, [*NATIVE, "Synthesis."], counting, json_mode=False)
    result = await agent.run("q")
    assert [piece async for piece in agent.stream_answer("q", result)]
    assert list(agent.journal.records) == [
        "react/1/llm",
        "react/1/tool/0",
        "react/2/llm",
        "react/2/tool/0",
        "react/2/tool/1",
        "react/3/llm",
        "answer/llm/0",
    ]


async def test_a_request_records_only_what_is_new(counting):
    agent, _, _ = agent_over({}, NATIVE, counting, json_mode=False)
    await agent.run("q")
    requests = [record["request"] for record in agent.journal.records.values() if record["kind"] is CallKind.LLM]
    assert [(r["messages_before"], len(r["messages"])) for r in requests] == [(0, 2), (2, 2), (4, 3)]


async def test_a_once_call_that_was_started_is_never_repeated(counting):
    started = asyncio.Event()

    async def pay():
        started.set()
        await asyncio.Event().wait()

    tool = Tool("pay", "", {"type": "object"}, pay)
    records = {}
    agent = ReActAgent(ScriptedChatModel([ToolCall("1", "pay", {})]), [tool], journal=MemoryJournal(records))
    task = asyncio.create_task(agent.run("q"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    again = ReActAgent(ScriptedChatModel([]), [tool], journal=MemoryJournal(records))
    with pytest.raises(UnknownOutcome) as caught:
        await again.run("q")
    assert caught.value.key == "react/1/tool/0"


async def test_a_read_call_that_was_started_runs_again(counting):
    records = {}
    journal = MemoryJournal(records)
    attempts = []

    async def effect():
        attempts.append(1)
        if len(attempts) == 1:
            raise RuntimeError("crash")
        return {"ok": True}

    with pytest.raises(RuntimeError):
        await journal.call("k", CallKind.TOOL, {"name": "x", "arguments": {}}, effect)
    assert not journal.recorded("k")
    assert await journal.call("k", CallKind.TOOL, {"name": "x", "arguments": {}}, effect) == {"ok": True}


async def test_other_arguments_at_a_recorded_position_stop_the_run(counting):
    agent, _, _ = agent_over({}, NATIVE, counting, json_mode=False)
    await agent.run("q")
    agent.journal.records["react/1/tool/0"]["request"]["arguments"] = {"n": 99}
    with pytest.raises(ReplayMismatch):
        await agent.run("q")


async def test_a_batch_finishes_before_the_run_is_suspended(counting):
    free, gated = counting("free"), counting("gated", needs_approval=True)
    decisions = {}

    async def gate(tool, arguments, key):
        if not tool.needs_approval:
            return Allow()
        if key not in decisions:
            raise RunSuspended("approval", key)
        return decisions[key]

    calls = [ToolCall("1", "gated", {"x": 1}), ToolCall("2", "free", {})]
    records = {}

    def agent(replies):
        model = ScriptedChatModel(replies)
        return ReActAgent(model, [free.tool, gated.tool], journal=MemoryJournal(records), gate=gate), model

    with pytest.raises(RunSuspended) as caught:
        await agent([calls])[0].run("q")
    assert (free.bodies, gated.bodies) == (1, 0)
    decisions[caught.value.key] = Allow()
    resumed, model = agent(["done"])
    result = await resumed.run("q")
    assert (free.bodies, gated.bodies, len(model.requests)) == (1, 1, 1)
    assert [step.tool_name for step in result.tool_steps] == ["gated", "free"]
    validate_pairing(model.requests[0]["messages"])


async def test_a_recorded_call_is_not_shown_to_the_gate_again(counting):
    asked = []

    async def gate(tool, arguments, key):
        asked.append(key)
        return Allow()

    agent, _, _ = agent_over({}, NATIVE, counting, json_mode=False, gate=gate)
    await agent.run("q")
    await agent.run("q")
    assert asked == ["react/1/tool/0", "react/2/tool/0", "react/2/tool/1"]


async def test_edited_arguments_are_run_shown_and_told(counting):  # E-37
    got = []

    async def gate(tool, arguments, key):
        return Allow(arguments={"n": 7})

    echo = counting(result=lambda n: got.append(n) or f"got {n}")
    model = ScriptedChatModel([ToolCall("1", "echo", {"n": 1}), "ok"])
    seen = []
    journal = MemoryJournal()
    agent = ReActAgent(model, [echo.tool], gate=gate, emit=seen.append, journal=journal)
    result = await agent.run("q")
    assert got == [7]
    assert result.steps[0].arguments == {"n": 7}
    assert "changed the arguments" in model.requests[1]["messages"][-1].text
    assert next(e.data["tool_args"] for e in seen if e.data["type"] == "iteration") == {"n": 7}
    request = journal.records["react/1/tool/0"]["request"]
    assert (request["arguments"], request["executed_arguments"]) == ({"n": 1}, {"n": 7})


@pytest.mark.parametrize("decision", [Deny("not today"), None, ValueError("gate broke")])
async def test_a_call_that_is_not_allowed_does_not_run(counting, decision):  # E-38
    async def gate(tool, arguments, key):
        if isinstance(decision, Exception):
            raise decision
        return decision

    echo = counting()
    result = await ReActAgent(ScriptedChatModel([ToolCall("1", "echo", {}), "ok"]), [echo.tool], gate=gate).run("q")
    assert echo.bodies == 0
    assert result.steps[0].error.startswith("denied: ")
    assert result.stop_reason == "final_answer"


async def test_a_tool_that_needs_approval_is_denied_without_a_gate(counting):
    echo = counting(needs_approval=True)
    await ReActAgent(ScriptedChatModel([ToolCall("1", "echo", {}), "ok"]), [echo.tool]).run("q")
    assert echo.bodies == 0


async def test_a_running_tool_knows_its_position(counting):
    echo = counting(result=lambda: current_call_key())
    result = await ReActAgent(ScriptedChatModel([ToolCall("1", "echo", {}), "ok"]), [echo.tool]).run("q")
    assert result.steps[0].observation == "react/1/tool/0"


def test_sync_tools_know_their_position_too():
    def where() -> str:
        return current_call_key()

    tool = Tool("where", "", {"type": "object"}, where, effect_class=EffectClass.PURE)
    result = asyncio.run(ReActAgent(ScriptedChatModel([ToolCall("1", "where", {}), "ok"]), [tool]).run("q"))
    assert result.steps[0].observation == "react/1/tool/0"


async def test_a_journal_needs_no_more_than_call(counting):
    class Narrow:
        def __init__(self):
            self.inner = MemoryJournal()

        async def call(self, *args, **options):
            return await self.inner.call(*args, **options)

    echo = counting()
    model = ScriptedChatModel([ToolCall("1", "echo", {}), "ok"])
    journal: Any = Narrow()
    agent = ReActAgent(model, [echo.tool], journal=journal)
    assert await agent.run("q") == await agent.run("q")
    assert echo.bodies == 1


# Interrupts


@pytest.mark.parametrize("json_mode", [True, False])
async def test_an_interrupt_during_a_tool_is_seen_by_the_next_call(counting, json_mode):  # E-68, E-69
    queue = InterruptQueue()
    echo = counting(result=lambda: queue.put("Also in euros.", id="m1") and "ok")
    replies = [call_text("echo"), final_text("Done.")] if json_mode else [ToolCall("1", "echo", {}), "Done."]
    model = ScriptedChatModel(replies, abilities={"tool_call": not json_mode, "json_mode": True})
    seen = []
    result = await ReActAgent(model, [echo.tool], emit=seen.append).run("q", interrupts=queue)
    last = model.requests[1]["messages"][-1]
    assert (last.text, last.pinned) == ("[USER INTERRUPT]: Also in euros.", True)
    assert [e.data for e in seen if e.channel == "inject"] == [
        {"type": "inject", "content": "Also in euros.", "message_id": "m1"}
    ]
    assert result.answer == "Done."


@pytest.mark.parametrize("json_mode", [True, False])
async def test_a_final_reply_is_not_accepted_while_an_interrupt_waits(json_mode):  # E-69, E-70
    queue = InterruptQueue()

    def answering(messages, **_):
        queue.put("one")
        queue.put("two")
        return final_text("Too early.") if json_mode else "Too early."

    last = final_text("With both.") if json_mode else "With both."
    model = ScriptedChatModel([answering, last], abilities={"tool_call": not json_mode, "json_mode": True})
    journal = MemoryJournal()
    agent = ReActAgent(model, journal=journal)
    result = await agent.run("q", interrupts=queue)
    assert (result.answer, result.iterations) == ("With both.", 2)
    assert model.requests[1]["messages"][-1].text == "[USER INTERRUPT]: the user sent 2 messages:\n1. one\n2. two"
    assert await agent.run("q") == result


async def test_a_recalled_interrupt_is_never_seen():  # E-71
    queue = InterruptQueue()
    key = queue.put("secret")
    assert queue.recall(key)
    assert not queue.recall(key)
    model = ScriptedChatModel(["ok"])
    await ReActAgent(model).run("q", interrupts=queue)
    assert all("secret" not in message.text for message in model.requests[0]["messages"])


async def test_an_interrupt_that_comes_too_late_stays_in_the_queue():  # E-72
    queue = InterruptQueue()

    def answering(messages, **_):
        queue.put("late")
        return "Final."

    result = await ReActAgent(ScriptedChatModel([answering]), max_iterations=1).run("q", interrupts=queue)
    assert result.answer == "Final."
    assert queue.drain() == ["late"]


async def test_an_interrupt_goes_back_when_the_model_call_fails():  # E-72
    queue = InterruptQueue()
    queue.put("keep me")
    with pytest.raises(ModelRefused):
        await ReActAgent(ScriptedChatModel([ModelRefused("no")])).run("q", interrupts=queue)
    assert queue.drain() == ["keep me"]
