"""What a tool may ask of the run that it works for; the variables are set by whoever runs it.

`asking`: a question to the person, in the middle of the tool's work. `telling`: how far it has come. `in_run`: the
built-in tools that need a run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
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


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total`, which may be unknown, and what is being done."""

    done: float
    total: float | None = None
    message: str = ""


Ask = Callable[[Question], Awaitable[Answer]]

in_run: ContextVar[Mapping[str, Callable[..., Awaitable[Any]]] | None] = ContextVar("in_run", default=None)
asking: ContextVar[Ask | None] = ContextVar("asking", default=None)
# Called in the task of a tool's call; what it gives may be called from any.
telling: ContextVar[Callable[[], Callable[[Progress], None]] | None] = ContextVar("telling", default=None)
