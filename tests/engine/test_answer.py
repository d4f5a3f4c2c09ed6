"""The answer: synthesis, direct streaming, and what happens when the model fails meanwhile."""

import asyncio

import pytest

from agentapp.engine import (
    Chunk,
    Completion,
    IncompleteStream,
    InterruptQueue,
    MemoryJournal,
    Message,
    ModelRefused,
    ReActAgent,
    RetryPolicy,
    ScriptedChatModel,
    ToolCall,
    Usage,
)

STREAMING = {"tool_call": True, "streaming": True}
FAST = RetryPolicy(first_wait=0.0)


class BreakingModel(ScriptedChatModel):
    """Breaks the first `times` streams off after their first piece."""

    def __init__(self, replies, times=1, **options):
        super().__init__(replies, **options)
        self.times = times

    async def stream_chat(self, messages, **options):
        async for chunk in super().stream_chat(messages, **options):
            yield chunk
            if self.times:
                self.times -= 1
                raise IncompleteStream("cut")


def answers(seen):
    return [event.data for event in seen if event.channel == "answer"]


def text_of(seen):
    """What a client shows: cleared at each start."""
    text = ""
    for data in answers(seen):
        if data["status"] == "start":
            text = ""
        elif data["status"] == "delta":
            assert data["offset"] == len(text)
            text += data["content"]
    return text


async def delivered(agent, result, query="q"):
    return "".join([piece async for piece in agent.stream_answer(query, result)])


async def test_the_synthesis_streams_over_the_whole_trace(counting):  # E-1, E-73, E-75, E-76, E-78
    queue = InterruptQueue()
    queue.put("In euros, please.")
    good, bad = counting("good", "r" * 3_000), counting("bad", ValueError("gone"))
    calls = [ToolCall("1", "good", {"k": "v"}), ToolCall("2", "bad", {})]
    model = ScriptedChatModel([calls, "Draft.", "The whole answer."])
    seen = []
    agent = ReActAgent(model, [good.tool, bad.tool], instructions="Be kind.", emit=seen.append)
    history = [Message.user("Earlier question"), Message.assistant("Earlier answer")]
    result = await agent.run("How much?", history=history, interrupts=queue)
    assert await delivered(agent, result, "How much?") == "The whole answer."
    request = model.requests[-1]
    assert (request["stream"], request["tools"]) == (True, None)
    system, prompt = (message.text for message in request["messages"])
    assert "Be kind." in system
    for part in ("How much?", "Earlier answer", '"k": "v"', "In euros, please.", "Draft.", "MISSING", "2,000 of 3,000"):
        assert part in prompt
    assert text_of(seen) == result.delivered == "The whole answer."
    statuses = [data["status"] for data in answers(seen)]
    assert (statuses[0], statuses[-1]) == ("start", "done")
    assert {data["attempt"] for data in answers(seen)} == {1}
    assert result.usage.calls == 3


async def test_a_recorded_answer_is_given_whole_and_without_events():
    journal = MemoryJournal()
    agent = ReActAgent(ScriptedChatModel(["a", "the answer"]), journal=journal)
    await delivered(agent, await agent.run("q"))
    seen = []
    again = ReActAgent(ScriptedChatModel([]), journal=MemoryJournal(journal.records), emit=seen.append)
    result = await again.run("q")
    assert [piece async for piece in again.stream_answer("q", result)] == ["the answer"]
    assert seen == []
    assert result.usage.calls == 2


@pytest.mark.parametrize("failure", [ModelRefused("no"), ""])
async def test_a_failure_before_the_first_word_delivers_the_draft(failure):  # E-77
    seen = []
    agent = ReActAgent(ScriptedChatModel(["The draft.", failure]), emit=seen.append)
    result = await agent.run("q")
    assert await delivered(agent, result) == "The draft." == text_of(seen)


@pytest.mark.parametrize(("times", "text"), [(1, "Second try."), (9, "The draft.")])
async def test_a_stream_that_breaks_begins_a_new_attempt(times, text):  # E-77
    seen = []
    model = BreakingModel(["The draft.", "First try.", "Second try."], times)
    agent = ReActAgent(model, emit=seen.append)
    result = await agent.run("q")
    await delivered(agent, result)
    assert text_of(seen) == text == result.delivered
    assert answers(seen)[-1] == {"status": "done", "attempt": 2 if times == 1 else 3}


async def test_a_reply_that_turns_out_to_be_nothing_is_cleared():  # E-77
    class Retracting(ScriptedChatModel):
        async def stream_chat(self, messages, **options):
            yield Chunk(content="One moment.")
            yield Chunk(finish_reason="stop", usage=Usage(calls=1), message=Message.assistant(""))

    seen = []
    agent = ReActAgent(Retracting(["The draft."]), emit=seen.append)
    result = await agent.run("q")
    await delivered(agent, result)
    assert text_of(seen) == result.delivered == "The draft."


async def test_closing_the_answer_stops_the_model():
    closed = asyncio.Event()

    class Endless(ScriptedChatModel):
        async def stream_chat(self, messages, **options):
            try:
                while True:
                    yield Chunk(content="on ")
                    await asyncio.sleep(0)
            finally:
                closed.set()

    agent = ReActAgent(Endless(["draft"]))
    stream = agent.stream_answer("q", await agent.run("q"))
    assert await anext(stream)
    await stream.aclose()
    await asyncio.wait_for(closed.wait(), 1)


# Direct answers


async def test_a_direct_answer_streams_from_the_only_call():
    seen = []
    model = ScriptedChatModel(["Hello there."], abilities=STREAMING)
    result = await ReActAgent(model, stream_direct=True, emit=seen.append).run("Hi")
    assert (len(model.requests), model.requests[0]["stream"]) == (1, True)
    assert (result.streamed, result.answer, text_of(seen)) == (True, "Hello there.", "Hello there.")
    tail = [(e.channel, e.data.get("type"), e.data["status"]) for e in seen[-3:]]
    assert tail == [("step", "thinking", "done"), ("step", "answer", "start"), ("answer", None, "done")]


async def test_a_direct_answer_replays_without_a_word():
    journal = MemoryJournal()
    model = ScriptedChatModel(["Hello there."], abilities=STREAMING)
    first = await ReActAgent(model, stream_direct=True, journal=journal).run("Hi")
    seen = []
    again = ReActAgent(
        ScriptedChatModel([], abilities=STREAMING), stream_direct=True, journal=journal, emit=seen.append
    )
    assert await again.run("Hi") == first
    assert seen == []


@pytest.mark.parametrize("abilities", [{"tool_call": True}, {"json_mode": True, "streaming": True}])
async def test_only_native_models_that_stream_answer_directly(abilities):
    model = ScriptedChatModel(['{"answer": "x"}'], abilities=abilities)
    result = await ReActAgent(model, stream_direct=True).run("q")
    assert (model.requests[0]["stream"], result.streamed) == (False, False)


async def test_text_before_a_tool_call_becomes_reasoning(counting):
    seen = []
    calls = [ToolCall("1", "echo", {})]
    both = Completion(Message.assistant("Let me look.", calls), "tool_calls", Usage(calls=1))
    model = ScriptedChatModel([both, "Found it.", "Synthesis."], abilities=STREAMING)
    agent = ReActAgent(model, [counting().tool], stream_direct=True, emit=seen.append)
    result = await agent.run("q")
    assert (result.answer, result.streamed, result.steps[0].reasoning) == ("Found it.", False, "Let me look.")
    assert [request["stream"] for request in model.requests] == [True, False]
    assert await delivered(agent, result) == text_of(seen) == "Synthesis."
    assert [d["attempt"] for d in answers(seen) if d["status"] == "start"] == [1, 2]


async def test_a_direct_stream_that_breaks_is_tried_again_with_a_new_attempt():
    seen = []
    model = BreakingModel(["Broken off.", "Whole."], abilities=STREAMING)
    result = await ReActAgent(model, stream_direct=True, emit=seen.append, retry=FAST).run("q")
    assert (result.answer, text_of(seen), result.attempt) == ("Whole.", "Whole.", 2)
