"""What is said to a model and what it says back: plain, immutable values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, NamedTuple

Role = Literal["system", "user", "assistant", "tool"]
Content = str | list[dict[str, Any]]


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for.

    `invalid` holds the raw text of arguments that were not a JSON object; such a call never runs, and
    `arguments` is then empty. `extra` is the provider's opaque data, sent back byte for byte.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    _: KW_ONLY
    invalid: str | None = None
    extra: dict[str, Any] | None = None

    @property
    def invalid_reason(self) -> str:
        """What is wrong with arguments that could not be read, and where."""
        try:
            value = json.loads(self.invalid or "", parse_constant=_refuse_constant)
        except ValueError as error:
            return f"They are not valid JSON: {error}"
        return f"They must be a JSON object, not {type(value).__name__}"

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {"id": self.id, "name": self.name, "arguments": self.arguments}
        if self.invalid is not None:
            data["invalid"] = self.invalid
        if self.extra:
            data["extra"] = self.extra
        return data


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `pinned` protects it from compaction, `author` is the model that wrote it: no provider sees them."""

    role: Role
    content: Content = ""
    _: KW_ONLY
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str | None = None
    name: str | None = None
    pinned: bool = False
    reasoning: str = ""
    author: str = field(default="", compare=False)
    # Encoded forms and estimates, computed once: a long history must not be walked again on every call.
    cache: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tool_calls, tuple):
            object.__setattr__(self, "tool_calls", tuple(self.tool_calls))

    @classmethod
    def system(cls, text: str) -> Message:
        return cls("system", text)

    @classmethod
    def user(cls, text: Content, pinned: bool = False) -> Message:
        return cls("user", text, pinned=pinned)

    @classmethod
    def assistant(cls, text: str = "", tool_calls: Sequence[ToolCall] = ()) -> Message:
        return cls("assistant", text, tool_calls=tool_calls)

    @classmethod
    def tool(cls, call_id: str, text: str) -> Message:
        return cls("tool", text, tool_call_id=call_id)

    @property
    def text(self) -> str:
        """The text of the message; image parts have none."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")

    def without_metadata(self) -> Message:
        """The message for another model than the one that wrote it: no reasoning, no opaque data on its calls."""
        if not self.reasoning and not any(call.extra for call in self.tool_calls):
            return self
        if (plain := self.cache.get("plain")) is None:
            calls = [replace(call, extra=None) for call in self.tool_calls]
            plain = self.cache["plain"] = replace(self, reasoning="", tool_calls=calls)
        return plain

    def to_dict(self) -> dict[str, Any]:
        """A JSON value that `from_dict` turns into an equal message."""
        data: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            data["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        for name in ("tool_call_id", "name", "reasoning"):
            if value := getattr(self, name):
                data[name] = value
        if self.pinned:
            data["pinned"] = True
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Message:
        calls = [
            ToolCall(c["id"], c["name"], c["arguments"], invalid=c.get("invalid"), extra=c.get("extra"))
            for c in data.get("tool_calls", ())
        ]
        return cls(
            data["role"],
            data["content"],
            tool_calls=calls,
            tool_call_id=data.get("tool_call_id"),
            name=data.get("name"),
            pinned=data.get("pinned", False),
            reasoning=data.get("reasoning", ""),
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls; `estimated` marks sums that hold a guess of ours."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    calls: int = 0
    _: KW_ONLY
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.calls + other.calls,
            estimated=self.estimated or other.estimated,
        )

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "calls": self.calls,
        }
        if self.estimated:
            data["estimated"] = True
        return data


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole reply."""

    message: Message
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)

    def to_dict(self) -> dict[str, Any]:
        """The recorded form. A model may not know its usage, but this was one call."""
        usage = (self.usage or Usage()).to_dict()
        usage["calls"] = usage["calls"] or 1
        return {"message": self.message.to_dict(), "finish_reason": self.finish_reason, "usage": usage}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Completion:
        return cls(Message.from_dict(data["message"]), data["finish_reason"], Usage(**data["usage"]))


class Chunk(NamedTuple):
    """A piece of a streamed reply; the last one carries `finish_reason`, `usage` and the whole `message`."""

    content: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    message: Message | None = None
