"""A call on its way to becoming a row."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agentapp.engine import CallKind, EffectClass, Event
from conversations.cleaning import canonical_json
from conversations.models import Call


@dataclass(slots=True)
class Open:
    """A call on its way: what must be closed if the run is stopped now."""

    kind: CallKind
    request: dict[str, Any]
    effect_class: EffectClass
    began: datetime
    started: list[Event]

    @property
    def waits(self) -> bool:
        """Whether its start must be on record before anything happens: it costs or changes something.

        So a stop that came before it is seen, and an effect that must not be repeated is known to have begun. Its end
        is waited for too. The record of any other call need not be: whatever comes of the call waits for a later
        record, and these are written in order.
        """
        return self.kind is CallKind.LLM or self.effect_class in (EffectClass.IDEMPOTENT, EffectClass.ONCE)

    def row(
        self,
        key: str,
        state: Call.State,
        *,
        result: dict[str, Any] | None = None,
        error: str = "",
        cost: int = 0,
    ) -> dict[str, Any]:
        ended = None if state == Call.State.STARTED else datetime.now(UTC)
        return {
            "key": key,
            "kind": str(self.kind),
            "request": self.request,
            "digest": digest(self.request) if self.kind is CallKind.TOOL else "",
            "effect_class": str(self.effect_class),
            "state": str(state),
            "result": result,
            "error": error or ((result or {}).get("content", "") if (result or {}).get("is_error") else ""),
            "usage": (result or {}).get("usage") or {},
            "cost": cost,
            "started_at": self.began,
            "ended_at": ended,
        }


def digest(request: dict[str, Any]) -> str:
    """SHA-256 of the call's canonical form: name and proposed arguments."""
    canonical = {"name": request["name"], "arguments": request["arguments"]}
    return hashlib.sha256(canonical_json(canonical)).hexdigest()
