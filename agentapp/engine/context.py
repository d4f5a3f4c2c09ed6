"""Keeping a conversation within a model's context.

The guard works on what is sent, never on the trace: the originals stay in the result and in the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from .errors import ModelError
from .interrupts import MARKER
from .journal import Journal
from .messages import Message, Usage
from .models import ChatModel
from .scope import journaled
from .summary import SUMMARY_HEAD, read_summary, summary_request
from .tokens import estimate_tokens
from .tools import cut_text

OBSERVATION = "Observation: "
CLEARED = "[an earlier result, cleared to save space]"


@dataclass(frozen=True, slots=True)
class Compaction:
    original_messages: int
    kept_messages: int
    method: str  # "summary" or "truncation"
    usage: Usage = field(default_factory=Usage)


class ContextGuard:
    """Makes message lists fit `budget` tokens.

    The system message always stays. Pinned messages stay while they take at most half of the budget; the current
    question and the newest interrupt stay in any case. A tool call is never parted from its results.
    """

    def __init__(
        self,
        budget: int,
        *,
        compact_model: ChatModel | None = None,
        keep_recent: int = 4,
        max_message_chars: int = 50_000,
        prompt: str | None = None,
    ) -> None:
        self.budget = budget
        self.compact_model = compact_model
        self.keep_recent = keep_recent
        self.max_message_chars = max_message_chars
        self.prompt = prompt
        self.last_compaction: Compaction | None = None

    async def check_and_compact(
        self, messages: Sequence[Message], hint: str = "general", *, journal: Journal | None = None, scope: str = ""
    ) -> list[Message]:
        """The messages themselves when they fit, else fewer. The input stays as it is."""
        kept, self.last_compaction = await self.reduce(messages, self.budget, hint, journal=journal, scope=scope)
        return kept

    async def reduce(
        self,
        messages: Sequence[Message],
        budget: int,
        hint: str,
        *,
        journal: Journal | None = None,
        scope: str = "",
        is_over: Callable[[], bool] = lambda: False,
    ) -> tuple[list[Message], Compaction | None]:
        """As above, to any budget, for callers that share a guard. `is_over` tells that the run has gone on from here:
        then a summary is taken from the journal or not at all."""
        cut = [self._cut(message) for message in messages]
        if estimate_tokens(cut) <= budget:
            return cut, None
        parts = _Parts.of(cut, budget, self.keep_recent)
        summary, usage = await self._summarise(parts.old, hint, journal, scope, is_over)
        kept, method = parts.with_summary(summary), "summary"
        if summary is None or estimate_tokens(kept) > budget:
            kept, method = parts.truncated(budget, summary), "truncation" if summary is None else "summary"
        return kept, Compaction(len(messages), len(kept), method, usage)

    def _cut(self, message: Message) -> Message:
        if message.role == "system" or not isinstance(message.content, str):
            return message
        if len(message.content) <= self.max_message_chars:
            return message
        return replace(message, content=cut_text(message.content, self.max_message_chars))

    async def _summarise(
        self,
        old: Sequence[Message],
        hint: str,
        journal: Journal | None,
        scope: str,
        is_over: Callable[[], bool],
    ) -> tuple[Message | None, Usage]:
        if self.compact_model is None or not old:
            return None, Usage()
        model = journaled(self.compact_model, journal, scope, "compaction", is_over)
        try:
            reply = await model.chat(summary_request(old, hint, self.prompt, model))
        except ModelError:
            return None, model.usage
        text = read_summary(reply.message.text)
        return (Message.user(f"{SUMMARY_HEAD}\n{text}") if text else None), model.usage


@dataclass(frozen=True, slots=True)
class _Parts:
    """A message list taken apart: what stays, what may go, and what is recent (in whole turns)."""

    system: list[Message]
    pinned: list[Message]
    old_turns: list[list[Message]]
    recent_turns: list[list[Message]]

    @classmethod
    def of(cls, messages: Sequence[Message], budget: int, keep_recent: int) -> _Parts:
        system = [message for message in messages if message.role == "system"]
        turns = whole_turns([message for message in messages if message.role != "system"])
        protected = _protected([turn[0] for turn in turns if turn[0].pinned], budget)
        free = [turn for turn in turns if id(turn[0]) not in protected]
        pinned = [turn[0] for turn in turns if id(turn[0]) in protected]
        recent = _recent(free, keep_recent, budget - estimate_tokens([*system, *pinned]))
        return cls(system, pinned, free[: len(free) - recent], free[len(free) - recent :])

    @property
    def old(self) -> list[Message]:
        return [message for turn in self.old_turns for message in turn]

    def with_summary(self, summary: Message | None) -> list[Message]:
        recent = [message for turn in self.recent_turns for message in turn]
        return [*self.system, *self.pinned, *([summary] if summary else []), *recent]

    def truncated(self, budget: int, summary: Message | None) -> list[Message]:
        """System, pinned, and the newest turns that fit; pinned ones are shortened if they alone do not."""
        room = budget - estimate_tokens(self.system)
        pinned = _shortened(self.pinned, room) if estimate_tokens(self.pinned) > room else self.pinned
        room -= estimate_tokens(pinned)
        head = [summary] if summary and estimate_tokens([summary]) <= room // 2 else []
        room -= estimate_tokens(head)
        newest: list[Message] = []
        for turn in reversed([*([] if head else self.old_turns), *self.recent_turns]):
            if estimate_tokens(turn) > room:
                if newest or room < 50 * len(turn):
                    break
                turn = _shortened(turn, room)
                if estimate_tokens(turn) > room:
                    break
            newest = turn + newest
            room -= estimate_tokens(turn)
        return [*self.system, *pinned, *head, *newest]


def whole_turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Messages in groups that must not be parted: an assistant message with calls, and its tool messages."""
    turns: list[list[Message]] = []
    for message in messages:
        if message.role == "tool" and turns:
            turns[-1].append(message)
        else:
            turns.append([message])
    return turns


def _protected(pinned: Sequence[Message], budget: int) -> set[int]:
    """Identities of the pinned messages that stay: the question, the newest interrupt, and others, newest first,
    as long as all of them take at most half of the budget."""
    spoken = [message.text.startswith(MARKER) for message in pinned]
    first = [
        next((m for m, is_it in zip(reversed(pinned), reversed(spoken), strict=True) if is_it is kind), None)
        for kind in (False, True)
    ]
    kept = {id(message): message for message in first if message is not None}
    for message in reversed(pinned):
        if estimate_tokens([*kept.values(), message]) <= budget // 2:
            kept.setdefault(id(message), message)
    return set(kept)


def _recent(turns: Sequence[Sequence[Message]], keep: int, room: int) -> int:
    """How many turns at the end hold at most `keep` messages and fit; at least the last one. What does not fit would
    only be lost, and so belongs into the summary."""
    count = size = 0
    for turn in reversed(turns):
        room -= estimate_tokens(turn)
        if count and (size + len(turn) > keep or room < 0):
            break
        count, size = count + 1, size + len(turn)
    return count


def _shortened(messages: Sequence[Message], room: int) -> list[Message]:
    """The messages with their texts cut so that together they take about `room` tokens."""
    share = max(0, room // max(1, len(messages)) - 25)
    shortened = []
    for message in messages:
        text = message.text
        per_token = 4 if text.isascii() else 1.5
        limit = int(share * per_token)
        fits = len(text) <= limit or not isinstance(message.content, str)
        shortened.append(message if fits else replace(message, content=cut_text(text, limit)))
    return shortened


def micro_compact(messages: list[Message], keep: int = 6) -> list[Message]:
    """All but the newest `keep` tool results become a placeholder; their ids stay. The input stays as it is."""
    places = [n for n, message in enumerate(messages) if _is_result(message)]
    old = places[: max(0, len(places) - max(0, keep))]
    if all(len(messages[n].text) <= len(OBSERVATION + CLEARED) for n in old):
        return messages
    compacted = list(messages)
    for n in old:
        message = compacted[n]
        if len(message.text) > len(OBSERVATION + CLEARED):
            placeholder = CLEARED if message.role == "tool" else OBSERVATION + CLEARED
            compacted[n] = replace(message, content=placeholder)
    return compacted


def _is_result(message: Message) -> bool:
    if message.role == "tool":
        return True
    return message.role == "user" and isinstance(message.content, str) and message.content.startswith(OBSERVATION)
