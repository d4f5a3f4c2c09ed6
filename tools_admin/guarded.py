"""Model rows as the engine calls them: within their provider's limits, and watched by their circuit breaker.

Import it only where models are called.
"""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agentapp.engine import (
    ChatModel,
    Chunk,
    Completion,
    IncompleteStream,
    Message,
    ModelChain,
    ModelError,
    ModelPaused,
    ModelUnavailable,
    OpenAIChatModel,
)
from tools_admin.clients import attempt_failed
from tools_admin.health import Health
from tools_admin.models import LanguageModel
from tools_admin.shown import as_shown
from tools_admin.turnstile import Turnstile


class GuardedModel:
    """One model row. `name` tells it from the other models of its chain."""

    def __init__(
        self, row: LanguageModel, model: OpenAIChatModel, health: Health, turnstile: Turnstile, name: str = ""
    ) -> None:
        self.row = row
        self.name = name or model.name
        self.abilities = model.abilities
        self.context_size = model.context_size
        self.max_output_tokens = model.max_output_tokens
        self.cost_of = model.cost_of
        self._model, self._health, self._turnstile = model, health, turnstile

    async def chat(self, messages: Sequence[Message], **options: Any) -> Completion:
        async with self._call():
            return await self._model.chat(self._shown(messages), **options)

    async def stream_chat(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Chunk]:
        async with self._call():
            stream: Any = self._model.stream_chat(self._shown(messages), **options)
            try:
                async for chunk in stream:
                    yield chunk
            finally:
                await stream.aclose()

    def _shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        return as_shown(messages, sees=bool(self.abilities.get("vision")))

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[None]:
        model, health = self.row.pk, self._health
        if not await health.may_call(model):
            raise ModelPaused(f"{self.row} has failed too often and is left alone for a while")
        try:
            async with self._turnstile.enter(self.row.provider):
                yield
        except ModelPaused:
            await health.gave_up(model)
            raise
        except (ModelUnavailable, IncompleteStream) as error:
            # A 4xx comes from an endpoint that works: too many requests are no breakdown.
            if error.status is None or error.status >= 500:
                await health.failed(model)
            else:
                await health.answered(model)
            await self._tell(error)
            raise
        except ModelError as error:
            await health.answered(model)
            await self._tell(error)
            raise
        except BaseException:
            await health.gave_up(model)
            raise
        await health.answered(model)

    async def _tell(self, error: ModelError) -> None:
        if tell := attempt_failed.get():
            await tell(self.name, error)


def guarded(models: Sequence[GuardedModel]) -> ChatModel:
    """One model, or a chain of them. Of two with the same name each says where it lives."""
    if len(models) == 1:
        return models[0]
    known = Counter(model.name for model in models)
    for model in models:
        if known[model.name] > 1:
            model.name = f"{model.name} ({model.row.provider})"
    return ModelChain(models)
