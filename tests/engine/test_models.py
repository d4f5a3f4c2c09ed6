"""Messages, the model registry, the scripted model and the pairing validator."""

import pytest

from agentapp.engine import (
    Completion,
    Event,
    Message,
    ModelRegistry,
    PairingError,
    PlanError,
    ReActAgent,
    ScriptedChatModel,
    ScriptExhausted,
    ToolCall,
    Usage,
    merge_adjacent,
    validate_pairing,
)

CALL = ToolCall("1", "f", {})


def test_a_message_survives_its_stored_form():
    calls = [ToolCall("1", "f", {"a": 1}, invalid="{", extra={"sig": "x"})]
    whole = Message("assistant", "text", tool_calls=calls, name="n", pinned=True, reasoning="r")
    for message in (whole, Message.tool("1", "ok"), Message.user([{"type": "text", "text": "hi"}])):
        assert Message.from_dict(message.to_dict()) == message


def test_usage_adds_up_and_remembers_estimates():
    total = Usage(1, 2, 3, 4, 1) + Usage(1, 1, 1, 1, 1, estimated=True)
    assert total == Usage(2, 3, 4, 5, 2, estimated=True)


def test_models_are_found_by_role():
    general, fast = ScriptedChatModel([]), ScriptedChatModel([])
    registry = ModelRegistry()
    registry.register(fast, roles=("fast",))
    assert registry.default is fast
    registry.register(general)
    assert (registry.get("fast"), registry.default) == (fast, general)
    with pytest.raises(KeyError, match="fast, general"):
        registry.get("reasoning")


@pytest.mark.parametrize(
    "messages",
    [
        [Message.tool("1", "orphan")],
        [Message.assistant("", [CALL])],
        [Message.assistant("", [CALL]), Message.user("u")],
        [Message.assistant("", [CALL]), Message.tool("2", "other")],
        [Message.assistant("", [CALL, CALL]), Message.tool("1", "a"), Message.tool("1", "b")],
    ],
)
def test_unpaired_lists_are_refused(messages):
    with pytest.raises(PairingError):
        validate_pairing(messages)


def test_merging_joins_text_and_parts_but_never_calls():  # E-67
    image = [{"type": "image_url", "image_url": {"url": "u"}}]
    merged = merge_adjacent(
        [Message.user("a", pinned=True), Message.user(image), Message.assistant("x"), Message.assistant("", [CALL])]
    )
    assert [m.role for m in merged] == ["user", "assistant", "assistant"]
    assert merged[0] == Message.user([{"type": "text", "text": "a"}, *image], pinned=True)


async def test_a_script_may_hold_callables_and_ends_with_an_error():
    async def later(messages, **request):
        return Completion(Message.assistant(f"{len(messages)} {request['stream']}"), "stop", Usage())

    model = ScriptedChatModel([later, lambda messages, **request: 7])
    assert (await model.chat([Message.user("q")])).message.text == "1 False"
    with pytest.raises(TypeError):
        await model.chat([])
    with pytest.raises(ScriptExhausted):
        await model.chat([])


async def test_a_streamed_script_yields_several_chunks_and_the_whole_message():
    reply = Completion(Message("assistant", "Hello there", reasoning="why"), "stop", Usage(1, 2, calls=1))
    chunks = [chunk async for chunk in ScriptedChatModel([reply]).stream_chat([])]
    assert len(chunks) > 3
    assert "".join(chunk.content for chunk in chunks) == "Hello there"
    assert (chunks[-1].message, chunks[-1].usage) == (reply.message, reply.usage)


def test_a_rejected_plan_names_its_fault_and_steps():
    error = PlanError("cycle", ["a", "b"], "a waits for b and b for a")
    assert (error.code, error.step_ids, error.message, str(error)) == (
        "cycle",
        ("a", "b"),
        *["a waits for b and b for a"] * 2,
    )
    assert str(PlanError("empty")) == "empty"


async def test_events_may_go_to_a_coroutine():
    seen: list[Event] = []

    async def emit(event):
        seen.append(event)

    await ReActAgent(ScriptedChatModel(["ok"]), emit=emit).run("q")
    assert [event.data["status"] for event in seen] == ["start", "done", "start"]


async def test_a_question_with_an_image_reaches_loop_and_synthesis():
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    model = ScriptedChatModel(["A harbour.", "It is a harbour."])
    agent = ReActAgent(model)
    result = await agent.run(parts)
    assert "".join([piece async for piece in agent.stream_answer(parts, result)]) == "It is a harbour."
    assert model.requests[0]["messages"][-1].content == parts
    assert parts in [message.content for message in model.requests[1]["messages"]]
