"""The messages of one run: all of them, and those that still fit the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .context import Compaction, ContextGuard, micro_compact
from .errors import ContextOverflow
from .messages import Message
from .scope import Scope
from .tokens import estimate_tokens, json_tokens


class Conversation:
    """`trace` only grows; `view` is what of it the next request holds. Both follow from recorded results.

    Examples stand behind the system message of every request, unchanged: no observation in them is ever old.
    """

    def __init__(
        self,
        guard: ContextGuard,
        scope: Scope,
        messages: Sequence[Message],
        keep_results: int,
        examples: Sequence[Message] = (),
    ) -> None:
        self._guard = guard
        self._scope = scope
        self._keep_results = keep_results
        self._examples = list(examples)
        self._recorded = 0
        self._overflowed = False
        self.trace = list(messages)
        self.view = list(messages)

    def say(self, *messages: Message) -> None:
        self.trace += messages
        self.view += messages

    def unrecorded(self) -> tuple[list[Message], int]:
        """The messages that no request has recorded yet, and how many have been."""
        if not self._recorded:
            return self._with_examples(self.trace), 0
        return self.trace[self._recorded :], self._recorded + len(self._examples)

    def outgoing(self) -> list[Message]:
        return self._with_examples(self.view)

    def _with_examples(self, messages: Sequence[Message]) -> list[Message]:
        return [messages[0], *self._examples, *messages[1:]]

    def mark_recorded(self) -> None:
        self._recorded = len(self.trace)

    async def fit(self, iteration: int, tools: Iterable[dict[str, Any]]) -> Compaction | None:
        """Makes the view fit before a call; raises `ContextOverflow` when nothing helps."""
        self.view = micro_compact(self.view, self._keep_results)
        budget = self._guard.budget - sum(map(json_tokens, tools)) - estimate_tokens(self._examples)
        return await self._reduce(budget, f"{iteration}/compact")

    async def shrink(self, iteration: int) -> Compaction | None:
        """After a provider's `ContextOverflow`: half the budget, once a run."""
        if self._overflowed:
            raise ContextOverflow("the model refused the context twice")
        self._overflowed = True
        size = min(self._guard.budget, estimate_tokens(self.view))
        return await self._reduce(size // 2, f"{iteration}/overflow")

    async def _reduce(self, budget: int, name: str) -> Compaction | None:
        self.view, compaction = await self._guard.reduce(
            self.view, budget, "react_iteration", journal=self._scope.journal, scope=self._scope.key(name)
        )
        if compaction is not None and estimate_tokens(self.view) > budget:
            raise ContextOverflow("system message and pinned messages alone do not fit the model")
        return compaction
