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
        self._constant_tokens = 0  # tool definitions and examples: the same in every request
        self._recorded = 0
        self._overflowed = False
        # Where a message would stand directly behind the last reply, in both lists.
        self._behind_reply: tuple[int, int] | None = None
        self.trace = list(messages)
        self.view = list(messages)

    def say(self, *messages: Message) -> None:
        self.trace += messages
        self.view += messages

    def say_reply(self, message: Message) -> None:
        self.say(message)
        self._behind_reply = None if message.tool_calls else (len(self.trace), len(self.view))

    def admit(self, messages: Sequence[Message], *, early: bool) -> None:
        """Interrupts. `early` ones waited already when the last reply came: they stand directly behind it, where that
        parts no call from its results."""
        if early and self._behind_reply is not None:
            in_trace, in_view = self._behind_reply
            self.trace[in_trace:in_trace] = messages
            self.view[in_view:in_view] = messages
        else:
            self.say(*messages)
        self._behind_reply = None

    def unrecorded(self) -> tuple[list[Message], int]:
        """The messages that no request has recorded yet, and how many have been."""
        if not self._recorded:
            return self._with_examples(self.trace), 0
        return self.trace[self._recorded :], self._recorded + len(self._examples)

    def outgoing(self, interrupts: Sequence[Message] = (), *, early: bool = False) -> list[Message]:
        """The next request, with interrupts where `admit` will put them."""
        messages = list(self.view)
        place = self._behind_reply[1] if early and self._behind_reply is not None else len(messages)
        messages[place:place] = interrupts
        return self._with_examples(messages)

    def _with_examples(self, messages: Sequence[Message]) -> list[Message]:
        return [messages[0], *self._examples, *messages[1:]]

    def mark_recorded(self) -> None:
        self._recorded = len(self.trace)

    async def fit(self, iteration: int, tools: Iterable[dict[str, Any]]) -> Compaction | None:
        """Makes the view fit before a call; raises `ContextOverflow` when nothing helps."""
        self.view = micro_compact(self.view, self._keep_results)
        self._constant_tokens = sum(map(json_tokens, tools)) + estimate_tokens(self._examples)
        return await self._reduce(self._guard.budget - self._constant_tokens, iteration, "compact")

    @property
    def size(self) -> int:
        """What the next request takes, in estimated tokens."""
        return self._constant_tokens + estimate_tokens(self.view)

    async def shrink(self, iteration: int) -> Compaction | None:
        """After a provider's `ContextOverflow`: half the budget, once a run."""
        if self._overflowed:
            raise ContextOverflow("the model refused the context twice")
        self._overflowed = True
        size = min(self._guard.budget, estimate_tokens(self.view))
        return await self._reduce(size // 2, iteration, "overflow")

    async def _reduce(self, budget: int, iteration: int, name: str) -> Compaction | None:
        self.view, compaction = await self._guard.reduce(
            self.view,
            budget,
            "react_iteration",
            journal=self._scope.journal,
            scope=self._scope.key(f"{iteration}/{name}"),
            is_over=lambda: self._scope.has_passed(iteration),
        )
        if compaction is None:
            return None
        self._behind_reply = None
        if estimate_tokens(self.view) > budget:
            raise ContextOverflow("system message and pinned messages alone do not fit the model")
        return compaction
