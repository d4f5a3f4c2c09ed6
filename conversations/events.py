"""Event envelopes as clients see them, and the events that the life of a run adds to the engine's."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agentapp.engine import Event
from conversations.cleaning import clean, to_json

MAX_EVENT_BYTES = 64 * 1024
DELTA_CHARS = 8_000  # at most six bytes each
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
    return to_json(body)


def deltas(run: uuid.UUID | str, text: str, offset: int, attempt: int) -> Iterator[bytes]:
    """Envelopes of a piece of an answer that begins at `offset`: one, or as many as the size of an event demands."""
    at = datetime.now(UTC)
    for start in range(0, len(text), DELTA_CHARS):
        content = text[start : start + DELTA_CHARS]
        data = {"status": "delta", "content": content, "offset": offset + start, "attempt": attempt}
        yield envelope(run, None, "answer", data, at)


_CHANNEL_AT = len(b'{"run":"00000000-0000-0000-0000-000000000000","channel":"')


def channel_of(body: bytes) -> bytes:
    """The channel of an encoded envelope, without decoding it."""
    return body[_CHANNEL_AT : body.index(b'"', _CHANNEL_AT)]


def seq_of(body: bytes) -> bytes:
    """The `seq` at the end of an encoded envelope, empty for a delta, without decoding it."""
    seq = body[body.rfind(b":") + 1 : -1]
    return seq if seq.isdigit() else b""


def bounded(data: dict[str, Any]) -> dict[str, Any]:
    """Cuts the long texts of an event until it fits into 64 KiB; the whole values stay with the call."""
    limit = 8_000
    while len(to_json(data)) > MAX_EVENT_BYTES - 1_024 and limit >= 100:
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
