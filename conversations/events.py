"""Event envelopes as clients see them, and the events that the life of a run adds to the engine's."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from agentapp.engine import Event
from conversations.cleaning import clean

MAX_EVENT_BYTES = 64 * 1024
_CUT = "… (cut; the whole text is in the trace)"


@dataclass(frozen=True, slots=True)
class KeyedEvent:
    """A durable event on its way into the database: `key` makes it unique in its run."""

    key: str
    channel: str
    data: dict[str, Any]

    @classmethod
    def of(cls, key: str, event: Event) -> "KeyedEvent":
        return cls(key, event.channel, bounded(clean(event.data)))


def envelope(run: uuid.UUID | str, seq: int | None, channel: str, data: dict[str, Any], at: datetime) -> bytes:
    """`{"run", "seq", "channel", "data", "at"}`; deltas have no `seq`."""
    body: dict[str, Any] = {
        "run": str(run),
        "channel": channel,
        "data": data,
        "at": at.isoformat(timespec="milliseconds"),
    }
    if seq is not None:
        body["seq"] = seq
    return orjson.dumps(body)


def bounded(data: dict[str, Any]) -> dict[str, Any]:
    """Cuts the long texts of an event until it fits into 64 KiB; the whole values stay with the call."""
    limit = 8_000
    while len(orjson.dumps(data, default=str)) > MAX_EVENT_BYTES - 1_024 and limit >= 100:
        data = {**_cut(data, limit), "truncated": True}
        limit //= 2
    return data


def _cut(value: Any, limit: int) -> Any:
    if isinstance(value, str) and len(value) > limit:
        return value[:limit] + _CUT
    if isinstance(value, dict):
        return {key: _cut(item, limit) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item, limit) for item in value[:limit]]
    return value
