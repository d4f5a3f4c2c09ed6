"""Several models as one: when one of them does not answer, the next does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

from .attempts import RetryPolicy, with_retries
from .errors import IncompleteStream, ModelError, ModelRefused, ModelUnavailable
from .messages import Chunk, Completion, Message, Usage
from .models import ChatModel, ToolDefinitions
from .prices import price_of

T = TypeVar("T")
# Called with the model that answered instead, and why the ones before it did not.
OnFallback = Callable[[ChatModel, Sequence[ModelError]], Awaitable[None]]

# What only limits a model: one model of a chain that is limited limits the chain.
_LIMITING = ("small",)
_FALLBACK = (ModelUnavailable, IncompleteStream, ModelRefused)
STUMBLES = 2


class ModelChain:
    """A `ChatModel` that asks its models in order and stays with the first that answers.

    The next one is asked when a model is unavailable, at once when it refuses the key or the account, or when its
    stream broke off twice. Any other error is the caller's: what is too long or malformed for one is so for all, and
    a filter is not to be evaded. A stream moves on only before its first visible text; later it raises, as whoever
    shows the text must begin anew.

    The chain can do what all its models can, within the smallest context. `name` is the model in use; no model sees
    reasoning or opaque data that another one wrote (`Message.author`).
    """

    def __init__(
        self,
        models: Sequence[ChatModel],
        *,
        retry: RetryPolicy = RetryPolicy(retries=1, first_wait=0.5, longest_wait=5.0),  # noqa: B008 (immutable)
        on_fallback: OnFallback | None = None,
    ) -> None:
        if not models:
            raise ValueError("a chain needs a model")
        self._models = list(models)
        self._retry = retry
        self.on_fallback = on_fallback
        self._stumbles = 0
        names = {name for model in models for name in model.abilities}
        self.abilities = {name: _joint(name, models) for name in names}
        self.context_size = min(model.context_size for model in models)
        self.max_output_tokens = min(model.max_output_tokens for model in models)

    @property
    def current(self) -> ChatModel:
        """The model that answered last, or will be asked first."""
        return self._models[0]

    @property
    def name(self) -> str:
        return self.current.name

    def cost_of(self, usage: Usage) -> float:
        """Of a call that the model in use has made."""
        return price_of(self.current, usage)

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> Completion:
        options: dict[str, Any] = {"tools": tools, "tool_choice": tool_choice, "response_format": response_format}
        return await self._ask(lambda model: model.chat(_for(model, messages), **options))

    async def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> AsyncIterator[Chunk]:
        options: dict[str, Any] = {"tools": tools, "tool_choice": tool_choice, "response_format": response_format}
        if self._stumbles >= STUMBLES and len(self._models) > 1:
            await self._move(1, [IncompleteStream(f"{self.name}: the stream broke off {self._stumbles} times")])
        begun, stream = await self._ask(lambda model: _begin(model.stream_chat(_for(model, messages), **options)))
        self._stumbles += 1  # until it has come to its end
        try:
            for chunk in begun:
                yield chunk
            async for chunk in stream:
                yield chunk
            self._stumbles = 0
        finally:
            await _close(stream)

    async def _ask(self, call: Callable[[ChatModel], Awaitable[T]]) -> T:
        """The first answer. Whoever calls may try again, so the last model is asked once."""
        failures: list[ModelError] = []
        for place, model in enumerate(self._models):
            policy = self._retry if place < len(self._models) - 1 else RetryPolicy(retries=0)
            try:
                answer = await with_retries(policy, lambda model=model: call(model))  # type: ignore[misc]
            except _FALLBACK as error:
                failures.append(error)
                continue
            if place:
                await self._move(place, failures)
            return answer
        raise next((error for error in failures if not isinstance(error, ModelRefused)), failures[0])

    async def _move(self, place: int, failures: Sequence[ModelError]) -> None:
        """From here on this model comes first; those before it are asked last."""
        self._models = [*self._models[place:], *self._models[:place]]
        self._stumbles = 0
        if self.on_fallback is not None:
            await self.on_fallback(self.current, failures)


def _joint(name: str, models: Sequence[ChatModel]) -> bool:
    has = [bool(model.abilities.get(name, name == "tool_choice")) for model in models]
    return any(has) if name in _LIMITING else all(has)


def _for(model: ChatModel, messages: Sequence[Message]) -> list[Message]:
    return [m.without_metadata() if m.author not in ("", model.name) else m for m in messages]


async def _begin(stream: AsyncIterator[Chunk]) -> tuple[list[Chunk], AsyncIterator[Chunk]]:
    """Reads up to the first visible text, or the end: until then another model may take over."""
    begun: list[Chunk] = []
    try:
        async for chunk in stream:
            begun.append(chunk)
            if chunk.content:
                break
    except BaseException:
        await _close(stream)
        raise
    return begun, stream


async def _close(stream: AsyncIterator[Chunk]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()
