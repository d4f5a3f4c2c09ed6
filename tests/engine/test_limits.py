"""What a run may use, and what it says that it used."""

import pytest

from agentapp.engine import (
    Completion,
    ContextGuard,
    Limits,
    MemoryJournal,
    Message,
    ModelUnavailable,
    ReActAgent,
    RetryPolicy,
    ScriptedChatModel,
    ToolCall,
    Usage,
)


def spending(reply, **usage):
    message = Message.assistant(reply) if isinstance(reply, str) else Message.assistant("", reply)
    return Completion(message, "stop", Usage(**usage, calls=1))


class Priced(ScriptedChatModel):
    def cost_of(self, usage):
        return usage.output_tokens * 2


@pytest.mark.parametrize(("limits", "stop"), [(Limits(tokens=100), "limit:tokens"), (Limits(cost=100), "limit:cost")])
async def test_tokens_and_money_have_limits(counting, limits, stop):  # E-10
    first = spending([ToolCall("1", "echo", {})], input_tokens=50, output_tokens=50)
    model = Priced([first, "What I have."])
    result = await ReActAgent(model, [counting().tool], limits=limits).run("q")
    assert (result.stop_reason, result.answer, len(model.requests)) == (stop, "What I have.", 2)


@pytest.mark.parametrize("nothing", [0, None])
async def test_no_limit_is_no_limit(counting, nothing):  # E-10
    limits = Limits(nothing, nothing, nothing, nothing, nothing)
    model = Priced([*(ToolCall(str(n), "echo", {"n": n}) for n in range(5)), "End."])
    result = await ReActAgent(model, [counting().tool], limits=limits, checklist_from=0, reflect_every=0).run("q")
    assert (result.stop_reason, result.iterations) == ("final_answer", 6)


async def test_money_counts_only_for_models_with_a_price(counting):
    model = ScriptedChatModel([ToolCall("1", "echo", {}), "End."])
    assert (await ReActAgent(model, [counting().tool], limits=Limits(cost=1)).run("q")).answer == "End."


async def test_waiting_for_a_model_ends_with_the_time_of_the_run():  # E-12
    model = ScriptedChatModel([ModelUnavailable("busy", retry_after=30)] * 4)
    result = await ReActAgent(model, limits=Limits(seconds=5), retry=RetryPolicy()).run("q")
    assert (result.stop_reason, len(model.requests)) == ("limit:seconds", 1)
    assert "seconds" in result.answer


async def test_the_end_for_want_of_time_is_replayed_without_another_attempt(counting):  # E-12
    journal = MemoryJournal()
    model = ScriptedChatModel([ToolCall("1", "echo", {}), *[ModelUnavailable("busy", retry_after=30)] * 4])
    options = {"limits": Limits(seconds=5), "journal": journal}
    result = await ReActAgent(model, [counting().tool], **options).run("q")
    again = ScriptedChatModel([])
    replayed = await ReActAgent(again, [counting().tool], **options).run("q")
    assert (replayed.stop_reason, replayed.answer, again.requests) == ("limit:seconds", result.answer, [])


async def test_after_the_last_iteration_the_answer_is_still_written(counting):  # E-9
    seen = []
    model = ScriptedChatModel([ToolCall("1", "echo", {}), "All that I found."])
    agent = ReActAgent(model, [counting().tool], max_iterations=1, emit=seen.append)
    result = await agent.run("q")
    assert "".join([piece async for piece in agent.stream_answer("q", result)]) == "All that I found."
    statuses = [event.data["status"] for event in seen if event.channel == "answer"]
    assert (statuses[0], statuses[-1]) == ("start", "done")
    assert "not completed" in model.requests[1]["messages"][-1].text


async def test_every_call_counts_and_says_what_it_was_for(counting):  # E-13
    one = {"input_tokens": 100, "output_tokens": 10, "reasoning_tokens": 3}
    big = counting("tool_0", "x" * 3_000)
    tools = [big.tool, *(counting(f"tool_{n}").tool for n in range(1, 13))]
    choice = spending([ToolCall("s", "choose_tools", {"tools": ["tool_0"]})], **one)
    turns = [spending([ToolCall(str(n), "tool_0", {"n": n})], **one) for n in range(6)]
    model = ScriptedChatModel([choice, *turns, spending("Draft.", **one), spending("Done.", **one)])
    guard = ContextGuard(3_000, keep_recent=2, compact_model=ScriptedChatModel([spending("a summary", **one)] * 9))
    agent = ReActAgent(model, tools, guard=guard, journal=MemoryJournal(), checklist_from=0, reflect_every=0)
    result = await agent.run("q")
    assert [piece async for piece in agent.stream_answer("q", result)]
    roles = [r["request"]["role"] for r in agent.journal.records.values() if r["kind"] == "llm"]
    assert set(roles) == {"selection", "loop", "compaction", "synthesis"}
    spent = Usage(100 * len(roles), 10 * len(roles), 0, 3 * len(roles), len(roles))
    assert result.usage == spent
    again = await agent.run("q")
    assert [piece async for piece in agent.stream_answer("q", again)] == ["Done."]
    assert again.usage == spent


async def test_one_model_serves_the_loop_and_the_answer(counting):  # E-2
    big = counting(result="x" * 3_000)
    main = ScriptedChatModel([*(ToolCall(str(n), "echo", {"n": n}) for n in range(6)), "Draft.", "Done."])
    cheap = ScriptedChatModel(["a summary"] * 9)
    agent = ReActAgent(
        main,
        [big.tool],
        guard=ContextGuard(3_000, keep_recent=2, compact_model=cheap),
        checklist_from=0,
        reflect_every=0,
    )
    result = await agent.run("q")
    assert [piece async for piece in agent.stream_answer("q", result)]
    assert len(main.requests) == 8
    assert cheap.requests
    assert all("Transcript" in request["messages"][-1].text for request in cheap.requests)


@pytest.mark.parametrize("last", ["", ModelUnavailable("busy")])
async def test_a_last_answer_that_says_nothing_is_replaced(counting, last):  # E-10
    first = spending([ToolCall("1", "echo", {})], input_tokens=50, output_tokens=50)
    model = ScriptedChatModel([first, last])
    agent = ReActAgent(
        model, [counting().tool], limits=Limits(tokens=100), retry=RetryPolicy(retries=0), journal=MemoryJournal()
    )
    result = await agent.run("q")
    assert (result.stop_reason, "echo: succeeded" in result.answer) == ("limit:tokens", True)
    assert await agent.run("q") == result
    assert len(model.requests) == 2


async def test_a_context_without_room_for_the_question_ends_the_run(counting):  # E-55, E-65
    model = ScriptedChatModel([ToolCall("1", "echo", {})], context_size=8_000, max_output_tokens=4_000)
    agent = ReActAgent(model, [counting().tool], instructions="i" * 17_000, journal=MemoryJournal())
    result = await agent.run("q")
    assert (result.stop_reason, model.requests) == ("context_irreducible", [])
    assert await agent.run("q") == result
