"""What the worker reads of a request: its messages as the engine has them."""

from typing import Any, NamedTuple

import orjson

from agentapp.engine import Message, ToolCall, repair_history
from agentapp.engine.messages import Content, Role
from conversations.models import Asked


class Talk(NamedTuple):
    """What an agent is told: further instructions, the conversation so far, and what it is to answer."""

    instructions: str
    history: list[Message]
    query: Content


def talk(asked: Asked) -> Talk:
    """A route's model gets the whole conversation; of an agent's the system messages are instructions beside its own,
    and the last message is its question."""
    messages = repair_history(_message(wire) for wire in asked.messages)  # results in the order of their calls
    if asked.route:
        return Talk("", messages, "")
    instructions = "\n\n".join(message.text for message in messages if message.role == "system")
    said = [message for message in messages if message.role != "system"]
    return Talk(instructions, said[:-1], said[-1].content)


def prelude(asked: Asked) -> tuple[str, list[Message]]:
    """What stands before the conversation that a page goes on with: the instructions, and all before the message that
    the page shows as the first. Pictures are not told again."""
    told = [{**wire, "content": text_of(wire.get("content"))} for wire in asked.messages]
    system = [_message(wire).text for wire in told if wire["role"] in ("system", "developer")]
    shown = max((place for place, wire in enumerate(told) if wire["role"] == "user"), default=len(told))
    before = [wire for wire in told[:shown] if wire["role"] not in ("system", "developer")]
    return "\n\n".join(system), repair_history(map(_message, before))


def has_images(asked: Asked) -> bool:
    return any(_images(message.get("content")) for message in asked.messages)


def text_of(content: Any) -> str:
    """The text of a message's content, which may be parts."""
    return Message.user(content or "").text


def _images(content: Any) -> bool:
    return isinstance(content, list) and any(part["type"] == "image_url" for part in content)


def _message(wire: dict[str, Any]) -> Message:
    role: Role = "system" if wire["role"] == "developer" else wire["role"]
    content = wire.get("content") or ""
    if not _images(content):  # a list of texts is not understood by every model's server
        content = text_of(content)
    calls = [_call(call) for call in wire.get("tool_calls") or ()]
    return Message(role, content, tool_calls=calls, tool_call_id=wire.get("tool_call_id"), name=wire.get("name"))


def _call(wire: dict[str, Any]) -> ToolCall:
    name, text = wire["function"]["name"], wire["function"]["arguments"]
    try:
        arguments = orjson.loads(text) if text.strip() else {}
    except orjson.JSONDecodeError:
        arguments = None
    if not isinstance(arguments, dict):
        return ToolCall(wire["id"], name, {}, invalid=text)
    return ToolCall(wire["id"], name, arguments)
