"""Requests hold whatever a model or a user has written."""

import json

import pytest

from agentapp.engine import Message, ToolCall, estimate_tokens
from agentapp.engine.openai_wire import WireStyle, encode_messages


@pytest.mark.parametrize("value", [10**30, "half an emoji: \ud83d", {"deep": [10**30, "\ud83d", None, 1.5]}])
def test_any_argument_can_be_sent_back_and_counted(value):
    message = Message.assistant("", [ToolCall("1", "f", {"value": value})])
    sent = json.loads(encode_messages([message], WireStyle()))
    arguments = json.loads(sent[0]["tool_calls"][0]["function"]["arguments"])
    assert json.dumps(arguments["value"]) == json.dumps(value).replace("\\ud83d", "?")
    assert estimate_tokens([message]) > 4


def test_each_style_has_its_own_form():
    messages = [Message.assistant("", [ToolCall("a-long-id", "f", {})]), Message.tool("a-long-id", "r")]
    plain, short = (json.loads(encode_messages(messages, WireStyle(short_ids=flag))) for flag in (False, True))
    assert plain[0]["tool_calls"][0]["id"] == plain[1]["tool_call_id"] == "a-long-id"
    assert short[0]["tool_calls"][0]["id"] == short[1]["tool_call_id"]
    assert len(short[1]["tool_call_id"]) == 9
