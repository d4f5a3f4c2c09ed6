"""An agent as a tool of another one: its calls live in the other's journal, on the other's account."""

import asyncio

import pytest

from agentapp.engine import (
    Allow,
    ContextGuard,
    Deny,
    InterruptQueue,
    Limits,
    MemoryJournal,
    ModelRefused,
    ModelUnavailable,
    ReActAgent,
    RetryPolicy,
    RunSuspended,
    ScriptedChatModel,
    Tool,
    ToolCall,
    UnknownOutcome,
    estimate_tokens,
    validate_pairing,
)

NO_WAIT = RetryPolicy(retries=0)


def ask(request="look", call_id="1", name="helper"):
    return ToolCall(call_id, name, {"request": request})


def family(child_replies, parent_replies, tools=(), **options):
    """A parent whose only tool is a child with `tools`."""
    child = ReActAgent(ScriptedChatModel(child_replies), tools, retry=NO_WAIT)
    model = ScriptedChatModel(parent_replies)
    return ReActAgent(model, [child.as_tool("helper", "Looks things up.")], **options), model, child.model


async def test_the_answer_of_the_child_is_the_result_of_the_call(counting):  # E-100
    echo, seen = counting(), []
    script = [ToolCall("c", "echo", {"n": 1}), "It is seven."]
    parent, model, child = family(script, [ask(), "Seven."], [echo.tool], emit=seen.append, journal=MemoryJournal())
    result = await parent.run("q")
    assert [(s.tool_name, s.observation) for s in result.tool_steps] == [("helper", "It is seven.")]
    assert model.requests[1]["messages"][-1].text == "It is seven."
    assert child.requests[0]["messages"][-1].text == "look"
    assert result.usage.calls == 4
    assert list(parent.journal.records) == [
        "react/1/llm",
        "react/1/tool/0/start",
        "react/1/tool/0/agent/react/1/llm",
        "react/1/tool/0/agent/react/1/tool/0",
        "react/1/tool/0/agent/react/2/llm",
        "react/1/tool/0",
        "react/2/llm",
    ]


async def test_of_a_child_only_its_tool_calls_are_told_and_marked(counting):
    seen = []
    script = [ToolCall("c", "echo", {}), "Seven."]
    parent, _, _ = family(script, [ask(), "Seven."], [counting().tool], emit=seen.append)
    await parent.run("q")
    told = [(e.data["type"], e.data["status"], e.data.get("call_id"), e.data.get("parent_call_id")) for e in seen]
    helper, inner = "react/1/tool/0", "react/1/tool/0/agent/react/1/tool/0"
    assert told[2:6] == [
        ("iteration", "start", helper, None),
        ("iteration", "start", inner, helper),
        ("iteration", "done", inner, helper),
        ("iteration", "done", helper, None),
    ]
    assert [kind for kind, *_ in told].count("answer") == 1


async def test_two_calls_of_one_child_have_a_state_each():  # C-6
    def answering(messages, **_):
        return f"about {messages[-1].text}"

    parent, _, child = family([answering] * 2, [[ask("cats", "1"), ask("dogs", "2")], "Both."])
    result = await parent.run("q")
    assert [step.observation for step in result.tool_steps] == ["about cats", "about dogs"]
    assert all(len(request["messages"]) == 2 for request in child.requests)


async def test_the_limits_of_the_parent_hold_in_the_child(counting):
    echo = counting()
    script = [*(ToolCall(str(n), "echo", {"n": n}) for n in range(5)), "never"]
    script[2] = "What I have."
    parent, _, child = family(script, [ask(), "End."], [echo.tool], limits=Limits(tool_calls=3))
    result = await parent.run("q")
    assert (echo.bodies, result.stop_reason, result.answer) == (2, "limit:tool_calls", "End.")
    assert [request["tools"] is None for request in child.requests] == [False, False, True]
    assert result.tool_steps[0].observation == "What I have."


async def test_a_child_has_no_limits_of_its_own(counting):
    echo = counting()
    script = [*(ToolCall(str(n), "echo", {"n": n}) for n in range(4)), "Seven."]
    child = ReActAgent(ScriptedChatModel(script), [echo.tool], limits=Limits(tool_calls=1), checklist_from=0)
    parent = ReActAgent(ScriptedChatModel([ask(), "End."]), [child.as_tool("helper", "")], limits=Limits(tool_calls=9))
    await parent.run("q")
    assert (echo.bodies, child.limits) == (4, Limits(tool_calls=1))


async def test_calls_of_children_side_by_side_are_counted_exactly(counting):  # C-15, E-14
    echo = counting()
    batch = [[ToolCall(str(n), "echo", {"n": n}) for n in range(3)]]

    def reply(messages, **request):
        return batch[0] if request["tools"] and messages[-1].role == "user" else "done"

    calls = [ask(str(n), str(n)) for n in range(25)]
    parent, _, _ = family([reply] * 60, [calls, "End."], [echo.tool], limits=Limits(tool_calls=50))
    result = await parent.run("q")
    assert echo.bodies == 25
    validate_pairing(result.messages)


async def test_the_gate_of_the_parent_guards_the_child(counting):
    echo, asked = counting(), []

    async def gate(tool, arguments, key):
        asked.append(key)
        return Deny("no") if tool.name == "echo" else Allow()

    parent, _, child = family(
        [ToolCall("c", "echo", {}), "I was not allowed."], [ask(), "End."], [echo.tool], gate=gate
    )
    await parent.run("q")
    assert asked == ["react/1/tool/0", "react/1/tool/0/agent/react/1/tool/0"]
    assert (echo.bodies, child.requests[1]["messages"][-1].text) == (0, "Error: denied: no")


@pytest.mark.parametrize(
    ("decision", "bodies", "told"),
    [(Allow(), 1, "ok"), (Allow({"n": 2}), 1, "changed the arguments"), (Deny("rejected"), 0, "denied: rejected")],
)
async def test_a_gated_call_of_a_child_waits_and_goes_on_without_repeating(counting, decision, bodies, told):  # C-42
    free, gated, decisions, seen, records, asked = counting("free"), counting("gated"), {}, [], {}, []

    async def gate(tool, arguments, key):
        asked.append(tool.name)
        if tool.name != "gated":
            return Allow()
        if key not in decisions:
            raise RunSuspended("approval", key)
        return decisions[key]

    def parent(child_replies, replies):
        tools = [free.tool, gated.tool]
        journal = MemoryJournal(records)
        return family(child_replies, replies, tools, gate=gate, emit=seen.append, journal=journal)

    both = [ToolCall("a", "free", {}), ToolCall("b", "gated", {"n": 1})]
    with pytest.raises(RunSuspended) as caught:
        await parent([both], [ask()])[0].run("q")
    assert caught.value.key == "react/1/tool/0/agent/react/1/tool/1"
    assert (free.bodies, gated.bodies) == (1, 0)
    decisions[caught.value.key] = decision
    agent, _, child = parent(["Done."], ["End."])
    result = await agent.run("q")
    assert (result.answer, free.bodies, gated.bodies) == ("End.", 1, bodies)
    assert told in child.requests[0]["messages"][-1].text
    assert sorted(asked) == ["free", "gated", "gated", "helper"]
    marks = [(e.data.get("call_id"), e.data["status"]) for e in seen if e.data["type"] == "iteration"]
    assert len(marks) == len(set(marks)) == 6


async def test_an_edited_request_is_what_the_child_works_on():
    async def gate(tool, arguments, key):
        return Allow({"request": "something else"})

    parent, model, child = family(["Done."], [ask(), "End."], gate=gate, journal=MemoryJournal())
    result = await parent.run("q")
    assert child.requests[0]["messages"][-1].text == "something else"
    assert "changed the arguments" in model.requests[1]["messages"][-1].text
    assert await parent.run("q") == result


async def test_a_child_that_may_not_be_asked_does_nothing():
    async def gate(tool, arguments, key):
        return Deny("not you")

    parent, _, child = family(["Done."], [ask(), "End."], gate=gate, journal=MemoryJournal())
    result = await parent.run("q")
    assert (result.steps[0].error, child.requests) == ("denied: not you", [])
    assert list(parent.journal.records) == ["react/1/llm", "react/1/tool/0", "react/2/llm"]


async def test_a_finished_delegation_is_not_done_again_and_counts_the_same(counting):
    script = [ToolCall("c", "echo", {}), "Seven."]
    echo = counting()
    parent, _, child = family(script, [ask(), "End."], [echo.tool], journal=MemoryJournal())
    first = await parent.run("q")
    second = await parent.run("q")
    assert (second, second.usage, echo.bodies, len(child.requests)) == (first, first.usage, 1, 2)


async def test_an_open_irreversible_call_of_a_child_is_not_repeated(counting):
    started = asyncio.Event()

    async def hang(**_):
        started.set()
        await asyncio.Event().wait()

    tool, records = Tool("pay", "", {"type": "object"}, hang), {}
    parent, _, _ = family([ToolCall("c", "pay", {})], [ask()], [tool], journal=MemoryJournal(records))
    task = asyncio.create_task(parent.run("q"))
    await asyncio.wait_for(started.wait(), 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 2)
    again, _, _ = family([], [], [tool], journal=MemoryJournal(records))
    with pytest.raises(UnknownOutcome) as caught:
        await again.run("q")
    assert caught.value.key == "react/1/tool/0/agent/react/1/tool/0"


@pytest.mark.parametrize("replies", [[ModelRefused("no key")], ["", ""]])
async def test_a_child_that_fails_is_an_error_for_the_parent(replies):
    parent, _, _ = family(replies, [ask(), "I could not."])
    result = await parent.run("q")
    assert result.steps[0].error
    assert result.answer == "I could not."


async def test_a_child_whose_model_is_away_for_now_leaves_with_the_parent():
    parent, _, _ = family([ModelUnavailable("busy")], [ask()])
    with pytest.raises(ModelUnavailable):
        await parent.run("q")


async def test_interrupts_are_for_the_parent():
    queue = InterruptQueue()

    def answering(messages, **_):
        queue.put("hurry")
        return "Done."

    parent, model, child = family([answering], [ask(), "End."])
    await parent.run("q", interrupts=queue)
    assert len(child.requests) == 1
    assert model.requests[1]["messages"][-1].text == "[USER INTERRUPT]: hurry"


async def test_the_context_of_a_child_is_that_of_its_own_model(counting):  # C-12
    big = counting("big", "x" * 9_000)
    script = [*(ToolCall(str(n), "big", {"n": n}) for n in range(6)), "Done."]
    small = ScriptedChatModel(script, context_size=10_000, max_output_tokens=2_000)
    child = ReActAgent(small, [big.tool], checklist_from=0)
    parent = ReActAgent(ScriptedChatModel([ask(), "End."]), [child.as_tool("helper", "")], guard=ContextGuard(90_000))
    await parent.run("q")
    assert all(estimate_tokens(request["messages"]) <= 8_000 for request in small.requests)


async def test_agents_that_delegate_to_themselves_come_to_an_end():
    model = ScriptedChatModel([])
    agent = ReActAgent(model)
    agent.registry.register(agent.as_tool("helper", "Me."))

    def reply(messages, **_):
        return ask() if messages[-1].role == "user" else messages[-1].text

    model._replies = iter([reply] * 40)
    result = await agent.run("q")
    assert "deeper" in result.answer
    assert len(model.requests) == 10


async def test_called_on_its_own_the_tool_is_a_run():
    tool = ReActAgent(ScriptedChatModel(["Alone."])).as_tool("helper", "")
    assert (await tool.execute({"request": "q"})).content == "Alone."
    assert tool.argument_error({})
