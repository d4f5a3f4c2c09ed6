"""A model that is waited for, where whoever asks it would take its absence for an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from .attempts import RetryPolicy, with_retries
from .errors import IncompleteStream, ModelUnavailable, RunSuspended
from .messages import Chunk, Completion, Message, Usage
from .models import ChatModel, ToolDefinitions
from .prices import price_of


class LeftAlone(RunSuspended):
    """The model does not answer now. The run is to be taken up again later, with the same journal."""

    def __init__(self, error: ModelUnavailable) -> None:
        super().__init__("model")
        self.error = error


class PatientModel:
    """Asks again where that may help; a model that still does not answer suspends the run.

    A planner, a router or a judge goes on after an error, with less. In a run that can wait, waiting is better.
    """

    def __init__(self, model: ChatModel, retry: RetryPolicy = RetryPolicy()) -> None:  # noqa: B008 (immutable)
        self._model = model
        self._retry = retry

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def abilities(self) -> Any:
        return self._model.abilities

    @property
    def context_size(self) -> int:
        return self._model.context_size

    @property
    def max_output_tokens(self) -> int:
        return self._model.max_output_tokens

    def cost_of(self, usage: Usage) -> float:
        return price_of(self._model, usage)

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> Completion:
        options: dict[str, Any] = {"tools": tools, "tool_choice": tool_choice, "response_format": response_format}
        try:
            return await with_retries(self._retry, lambda: self._model.chat(messages, **options))
        except ModelUnavailable as error:
            raise LeftAlone(error) from error

    async def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> AsyncIterator[Chunk]:
        """Before the first piece a stream is begun anew; later its end is the caller's."""
        options: dict[str, Any] = {"tools": tools, "tool_choice": tool_choice, "response_format": response_format}

        async def begin() -> tuple[Chunk | None, AsyncIterator[Chunk]]:
            stream = self._model.stream_chat(messages, **options)
            return await anext(stream, None), stream

        try:
            first, stream = await with_retries(self._retry, begin)
        except ModelUnavailable as error:
            raise LeftAlone(error) from error
        if first is None:
            raise IncompleteStream("the stream ended before it began")
        yield first
        async for chunk in stream:
            yield chunk
