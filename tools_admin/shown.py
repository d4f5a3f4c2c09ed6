"""Pictures in messages: their address stands there, and just before a model is asked it gets what it can take.

So records of calls stay small, a run that is resumed says the same, and a model that does not see is told so.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import UUID

from agentapp.engine import Message
from agentapp.engine.untrusted import harmless

_PREFIX = "attachment:"
NOT_SHOWN = "[{name}: a picture that is not shown here any more.]"
NOT_SEEN = "[{name}: a picture. You cannot see pictures; say so plainly if the request is about it.]"


@dataclass(frozen=True)
class Picture:
    name: str
    content_type: str
    data: bytes

    @cached_property
    def url(self) -> str:
        return f"data:{self.content_type};base64,{base64.b64encode(self.data).decode()}"


# The pictures of the run that works in this task, by address; its worker says so.
pictures: ContextVar[Mapping[str, Picture] | None] = ContextVar("pictures", default=None)


def address_of(number: UUID) -> str:
    return f"{_PREFIX}{number}"


def picture_part(number: UUID, name: str) -> dict[str, Any]:
    """A part of a message's content, in the form of the chat completions format."""
    return {"type": "image_url", "image_url": {"url": address_of(number)}, "name": name}


def as_shown(messages: Sequence[Message], *, sees: bool) -> Sequence[Message]:
    """The messages with pictures in place of their addresses, or with words for a model that does not see."""
    known = pictures.get()
    return messages if known is None else [_shown(message, known, sees) for message in messages]


def _shown(message: Message, known: Mapping[str, Picture], sees: bool) -> Message:
    if isinstance(message.content, str):
        return message
    cached: Message | None = message.cache.get(("shown", sees))
    if cached is None:
        parts = [_part(part, known, sees) for part in message.content]
        content: Any = parts if any(part["type"] != "text" for part in parts) else "\n".join(p["text"] for p in parts)
        cached = message.cache["shown", sees] = replace(message, content=content)
    return cached


def _part(part: dict[str, Any], known: Mapping[str, Picture], sees: bool) -> dict[str, Any]:
    if part["type"] != "image_url" or not part["image_url"]["url"].startswith(_PREFIX):
        return part
    picture = known.get(part["image_url"]["url"])
    if sees and picture:
        return {"type": "image_url", "image_url": {"url": picture.url}}
    words = NOT_SHOWN if sees else NOT_SEEN
    return {"type": "text", "text": words.format(name=harmless(part["name"]))}
