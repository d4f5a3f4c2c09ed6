"""A conversation that is only passed on."""

import pytest

from agentapp.engine import MemoryJournal, Message, ModelUnavailable, RelayAgent, ScriptedChatModel, ToolCall

HISTORY = [Message.system("Be brief."), Message.user("Hello")]
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


@pytest.mark.parametrize("streaming", [True, False])
async def test_the_model_gets_the_conversation_and_nothing_else(streaming):
    model = ScriptedChatModel(["Hi."], abilities={"streaming": streaming})
    events = []
    result = await RelayAgent(model, {}, emit=events.append).run("not looked at", history=HISTORY)
    assert (result.answer, result.streamed) == ("Hi.", True)
    assert [m.text for m in model.requests[0]["messages"]] == ["Be brief.", "Hello"]
    assert "".join(e.data.get("content", "") for e in events if e.channel == "answer") == "Hi."
    assert [text async for text in RelayAgent(model, {}).stream_answer("", result)] == ["Hi."]


async def test_calls_are_left_to_whoever_asked():
    model = ScriptedChatModel([ToolCall("1", "weather", {})])
    events = []
    agent = RelayAgent(model, {"tools": TOOLS, "tool_choice": "required"}, emit=events.append)
    result = await agent.run("", history=HISTORY)
    assert [call.name for call in result.messages[-1].tool_calls] == ["weather"]
    assert (model.requests[0]["tools"], model.requests[0]["tool_choice"]) == (TOOLS, "required")
    assert (result.answer, events) == ("", [])


async def test_a_replay_asks_nobody():
    journal = MemoryJournal()
    first = await RelayAgent(ScriptedChatModel(["Hi."]), {}, journal=journal).run("", history=HISTORY)
    again = await RelayAgent(ScriptedChatModel([]), {}, journal=journal).run("", history=HISTORY)
    assert again == first


async def test_nothing_is_tried_again():
    model = ScriptedChatModel([ModelUnavailable("down"), "Hi."])
    with pytest.raises(ModelUnavailable):
        await RelayAgent(model, {}).run("", history=HISTORY)
    assert len(model.requests) == 1
