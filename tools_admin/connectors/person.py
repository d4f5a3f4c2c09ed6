"""A tool in the middle of its work asks the person whose run it is; `asking` is set by whoever runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Question:
    """`schema` is the JSON Schema of an object of plain fields; without fields it is a question of yes or no.

    `url` is a page that the person is asked to visit.
    """

    text: str
    schema: dict[str, Any] = field(default_factory=dict)
    url: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person did: gave `content`, said no, or nothing (in time)."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] = field(default_factory=dict)


Ask = Callable[[Question], Awaitable[Answer]]

asking: ContextVar[Ask | None] = ContextVar("asking", default=None)
