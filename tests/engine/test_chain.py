"""Several models as one: who is asked next, and what nobody is told."""

import asyncio

import pytest

from agentapp.engine import (
    BadModelRequest,
    Chunk,
    Completion,
    ContentFiltered,
    ContextOverflow,
    IncompleteStream,
    MemoryJournal,
    Message,
    ModelChain,
    ModelRefused,
    ModelUnavailable,
    ReActAgent,
    RetryPolicy,
    ScriptedChatModel,
    ToolCall,
)

AT_ONCE = RetryPolicy(retries=1, first_wait=0)


def model(name, *replies, **options):
    scripted = ScriptedChatModel(list(replies), **options)
    scripted.name = name
    return scripted


def chain(*models, **options):
    return ModelChain(models, retry=AT_ONCE, **options)


async def text_of(stream):
    return "".join([chunk.content async for chunk in stream])


async def test_an_unavailable_model_is_tried_again_then_the_next_answers_and_stays():
    first = model("first", *[ModelUnavailable("down")] * 2)
    second = model("second", "One.", "Two.")
    told = []

    async def on_fallback(now, failures):
        told.append((now.name, [str(failure) for failure in failures]))

    both = chain(first, second, on_fallback=on_fallback)
    assert (await both.chat([Message.user("q")])).message.text == "One."
    assert both.name == "second"
    assert (await both.chat([Message.user("q")])).message.text == "Two."
    assert (len(first.requests), len(second.requests), told) == (2, 2, [("second", ["down"])])


async def test_a_refusing_model_is_left_at_once():
    first, second = model("first", ModelRefused("no quota")), model("second", "Yes.")
    assert (await chain(first, second).chat([Message.user("q")])).message.text == "Yes."
    assert len(first.requests) == 1


@pytest.mark.parametrize("error", [ContextOverflow("long"), BadModelRequest("bad"), ContentFiltered("no")])
async def test_what_fails_for_all_models_goes_to_no_other(error):
    second = model("second", "never")
    with pytest.raises(type(error)):
        await chain(model("first", error), second).chat([Message.user("q")])
    assert not second.requests


async def test_when_all_fail_waiting_may_help_if_it_may_for_one_of_them():
    refused, down = ModelRefused("key"), ModelUnavailable("down", retry_after=7)
    with pytest.raises(ModelUnavailable) as raised:
        await chain(model("first", refused), model("second", down)).chat([Message.user("q")])
    assert raised.value.retry_after == 7
    with pytest.raises(ModelRefused, match="one"):
        one, two = model("first", ModelRefused("one")), model("second", ModelRefused("two"))
        await chain(one, two).chat([Message.user("q")])


async def test_the_model_left_behind_stands_in_for_the_one_that_took_over():
    first = model("first", ModelUnavailable(), ModelUnavailable(), "Back.")
    second = model("second", "Here.", ModelUnavailable(), ModelUnavailable())
    both = chain(first, second)
    await both.chat([Message.user("q")])
    assert (await both.chat([Message.user("q")])).message.text == "Back."
    assert both.name == "first"


async def test_a_stream_moves_on_before_its_first_word():  # E-86
    first = model("first", *[ModelUnavailable()] * 2, abilities={"streaming": True})
    both = chain(first, model("second", "Good day.", abilities={"streaming": True}))
    assert await text_of(both.stream_chat([Message.user("q")])) == "Good day."


class Breaking(ScriptedChatModel):
    """Streams a few words, then breaks off."""

    name = "breaking"
    asked = closed = 0

    async def stream_chat(self, messages, **options):
        self.asked += 1
        try:
            yield Chunk("Half an ")
            raise IncompleteStream("cut")
        finally:
            self.closed += 1


async def test_a_stream_that_broke_off_after_its_first_word_begins_anew_and_then_elsewhere():  # E-86
    breaking = Breaking([])
    both = chain(breaking, model("second", "A whole answer."))
    for _ in range(2):
        with pytest.raises(IncompleteStream):
            await text_of(both.stream_chat([Message.user("q")]))
    assert await text_of(both.stream_chat([Message.user("q")])) == "A whole answer."
    assert (breaking.asked, breaking.closed, both.name) == (2, 2, "second")


async def test_an_abandoned_stream_is_closed():
    class Endless(ScriptedChatModel):
        name = "endless"
        closed = False

        async def stream_chat(self, messages, **options):
            try:
                yield Chunk("a")
                await asyncio.Event().wait()
            finally:
                self.closed = True

    endless = Endless([])
    stream = chain(endless, model("second")).stream_chat([Message.user("q")])
    assert (await anext(stream)).content == "a"
    await stream.aclose()
    assert endless.closed


def test_a_chain_can_what_all_its_models_can_within_the_smallest_context():
    large = model("large", abilities={"tool_call": True, "vision": True}, context_size=100_000)
    small = model("small", abilities={"tool_call": True, "small": True, "tool_choice": False}, context_size=8_000)
    both = chain(large, small)
    abilities = {name for name, has in both.abilities.items() if has}
    assert (abilities, both.context_size) == ({"tool_call", "small"}, 8_000)
    assert both.abilities["tool_choice"] is False


def with_metadata(call_id):
    call = ToolCall(call_id, "add", {"a": 1, "b": 2}, extra={"signature": call_id})
    return Completion(Message("assistant", "", tool_calls=[call], reasoning=f"thoughts about {call_id}"))


def metadata(request):
    return [
        (m.reasoning, [call.extra for call in m.tool_calls])
        for m in request["messages"]
        if m.role == "assistant" and (m.reasoning or any(call.extra for call in m.tool_calls))
    ]


async def test_no_model_sees_what_another_one_attached_and_each_gets_its_own_back(add):  # E-86, E-91
    first = model("first", with_metadata("one"), ModelUnavailable(), ModelUnavailable())
    second = model("second", with_metadata("two"), "It is 3.")
    agent = ReActAgent(chain(first, second), [add], block_repeats=False, reflect_every=0)
    result = await agent.run("q")
    assert result.answer == "It is 3."
    assert [metadata(request) for request in first.requests] == [
        [],
        *[[("thoughts about one", [{"signature": "one"}])]] * 2,
    ]
    assert [metadata(request) for request in second.requests] == [[], [("thoughts about two", [{"signature": "two"}])]]


async def test_the_record_names_the_model_that_answered_and_a_resumed_run_goes_on_with_it(add):
    journal = MemoryJournal()
    first = model("first", with_metadata("one"), ModelUnavailable(), ModelUnavailable())
    second = model("second", with_metadata("two"), "It is 3.")
    whole = await ReActAgent(chain(first, second), [add], journal=journal, block_repeats=False).run("q")
    names = [record["result"]["model"] for key, record in journal.records.items() if key.endswith("/llm")]
    assert names == ["first", "second", "second"]

    kept = {key: record for key, record in journal.records.items() if not key.startswith("react/3")}
    again, unasked = model("second", "It is 3."), model("first")
    resumed = ReActAgent(chain(again, unasked), [add], journal=MemoryJournal(kept), block_repeats=False)
    assert (await resumed.run("q")).answer == whole.answer
    assert metadata(again.requests[0]) == [("thoughts about two", [{"signature": "two"}])]
