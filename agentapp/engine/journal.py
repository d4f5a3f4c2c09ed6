"""The one door between the engine and the world.

Every effect has a position in the run, its key. The first time the effect happens and its result is recorded;
from then on the same position gives the recorded result and nothing happens. So a run is resumed by running
the same code again over its journal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum
from typing import Any, Protocol

from .errors import ReplayMismatch, UnknownOutcome
from .events import Event

Effect = Callable[[], Awaitable[dict[str, Any]]]
Finished = Callable[[dict[str, Any]], Iterable[Event]]


def giving(result: dict[str, Any]) -> Effect:
    """No effect at all: a result that is known already."""

    async def effect() -> dict[str, Any]:
        return result

    return effect


class CallKind(StrEnum):
    LLM = "llm"
    TOOL = "tool"
    CLOCK = "clock"
    PUBLISH = "publish"


class EffectClass(StrEnum):
    """How a tool may be repeated after a crash: freely, with an idempotency key, or never."""

    PURE = "pure"
    READ = "read"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


class Journal(Protocol):
    async def call(
        self,
        key: str,
        kind: CallKind,
        request: dict[str, Any],
        effect: Effect,
        *,
        effect_class: EffectClass = EffectClass.READ,
        started: Iterable[Event] = (),
        finished: Finished | None = None,
    ) -> dict[str, Any]:
        """Returns the recorded result of `key`, or runs `effect`, records its result and returns that.

        An effect that raises leaves no result. `UnknownOutcome` is raised for a `ONCE` call that was started
        and never finished; `ReplayMismatch` for a tool call whose name or arguments differ from the record.
        `started` and `finished(result)` are recorded with the call, once.
        """
        ...

    def recorded(self, key: str) -> bool:
        """Whether `key` has a result, or was started and must not be repeated: its effect will not run."""
        ...


class MemoryJournal:
    """A journal in a dict of JSON values. Pass `records` to a new one to resume."""

    def __init__(self, records: dict[str, dict[str, Any]] | None = None) -> None:
        self.records: dict[str, dict[str, Any]] = {} if records is None else records

    def recorded(self, key: str) -> bool:
        record = self.records.get(key)
        return record is not None and ("result" in record or record["effect_class"] == EffectClass.ONCE)

    async def call(
        self,
        key: str,
        kind: CallKind,
        request: dict[str, Any],
        effect: Effect,
        *,
        effect_class: EffectClass = EffectClass.READ,
        started: Iterable[Event] = (),
        finished: Finished | None = None,
    ) -> dict[str, Any]:
        record = self.records.get(key)
        if record is not None:
            check_same_call(key, kind, record["request"], request)
            if "result" in record:
                return record["result"]  # type: ignore[no-any-return]
            if record["effect_class"] == EffectClass.ONCE:
                raise UnknownOutcome(key)
        record = {"kind": kind, "effect_class": effect_class, "request": request, "events": _plain(started)}
        if effect_class is EffectClass.ONCE:
            self.records[key] = record
        result = await effect()
        record["result"] = result
        record["events"] += _plain(finished(result) if finished else ())
        self.records[key] = record
        return result


def _plain(events: Iterable[Event]) -> list[dict[str, Any]]:
    return [{"channel": event.channel, "data": event.data} for event in events]


def check_same_call(key: str, kind: CallKind, recorded: dict[str, Any], asked: dict[str, Any]) -> None:
    """A recorded tool call is a fact about these arguments only; a recorded reply is a fact whatever was asked."""
    if kind is CallKind.TOOL and any(recorded[part] != asked[part] for part in ("name", "arguments")):
        raise ReplayMismatch(key)
