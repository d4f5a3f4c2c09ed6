"""A model that follows a script: the test double for everything that talks to a model."""

from __future__ import annotations

import copy
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .errors import ScriptExhausted
from .messages import Chunk, Completion, Message, ToolCall, Usage

Reply = str | ToolCall | list[ToolCall] | Completion | Exception | Callable[..., Any]


class ScriptedChatModel:
    """Gives `replies` in order, one a call, and keeps every request in `requests`."""

    def __init__(
        self,
        replies: Iterable[Reply],
        *,
        abilities: Mapping[str, bool] = MappingProxyType({"tool_call": True, "json_mode": True}),
        context_size: int = 128_000,
        max_output_tokens: int = 4_096,
        name: str = "scripted",
    ) -> None:
        self.name = name
        self.abilities = abilities
        self.context_size = context_size
        self.max_output_tokens = max_output_tokens
        self.requests: list[dict[str, Any]] = []
        self._replies = iter(replies)

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> Completion:
        request = {"tools": tools, "tool_choice": tool_choice, "response_format": response_format}
        return await self._next(messages, stream=False, **request)

    async def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> AsyncIterator[Chunk]:
        request = {"tools": tools, "tool_choice": tool_choice, "response_format": response_format}
        completion = await self._next(messages, stream=True, **request)
        if completion.message.reasoning:
            yield Chunk(reasoning=completion.message.reasoning)
        for piece in re.findall(r"(?s).{1,4}", completion.message.text):
            yield Chunk(content=piece)
        yield Chunk(finish_reason=completion.finish_reason, usage=completion.usage, message=completion.message)

    async def _next(self, messages: Sequence[Message], **request: Any) -> Completion:
        self.requests.append({"messages": copy.deepcopy(list(messages)), **copy.deepcopy(request)})
        try:
            reply = next(self._replies)
        except StopIteration:
            raise ScriptExhausted(f"call {len(self.requests)} has no reply in the script") from None
        if callable(reply) and not isinstance(reply, Exception):
            reply = reply(list(messages), **request)
            if hasattr(reply, "__await__"):
                reply = await reply
        return _as_completion(reply, messages)


def _as_completion(reply: Any, messages: Sequence[Message]) -> Completion:
    if isinstance(reply, Exception):
        raise reply
    if isinstance(reply, Completion):
        return reply
    if isinstance(reply, ToolCall):
        reply = [reply]
    read = sum(len(message.text) for message in messages) // 4
    if isinstance(reply, str):
        usage = Usage(read, len(reply) // 4 + 1, calls=1)
        return Completion(Message.assistant(reply), "stop", usage)
    if isinstance(reply, list) and all(isinstance(call, ToolCall) for call in reply):
        return Completion(Message.assistant("", reply), "tool_calls", Usage(read, 10 * len(reply), calls=1))
    raise TypeError(f"a script holds no {type(reply).__name__}")
