"""One reader a web process: follows the live logs that somebody here watches and fans them out locally."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import redis
import redis.asyncio

from conversations import live

log = logging.getLogger(__name__)

Entry = tuple[int | None, bytes]  # a durable event's seq (None for deltas and user events) and its envelope
Deliver = Callable[[Entry], None]

BLOCK_MS = 5_000
AT_A_TIME = 20  # entries of a log: what was read goes out before more is read, so that a burst fills no outbox
RETRY_SECONDS = 0.2
LOOKS_AT_ONCE = 20  # the client has a bounded number of connections: pages that open at once take turns


@dataclass(slots=True)
class _Stream:
    """A followed log: how far it was read, and who listens."""

    position: bytes
    listeners: list[Deliver] = field(default_factory=list)


class Hub:
    """`join()` gives a log from its start and goes on from exactly there; `leave()` ends it.

    Everybody gets the same bytes: an event is read and prepared once, however many listen.
    """

    def __init__(self) -> None:
        self._redis: Any = live.async_client()  # its types describe every protocol at once
        self._streams: dict[str, _Stream] = {}
        self._control = f"hub:{uuid4().hex}"
        self._control_position = b"0"
        self._reader: asyncio.Task[None] | None = None
        self._turn = asyncio.Semaphore(LOOKS_AT_ONCE)

    async def join(self, key: str, deliver: Deliver, *, from_start: bool = True, new: bool = False) -> list[Entry]:
        """Entries so far (none with `from_start=False`); `deliver` is called for each one after them.

        In a `new` log there may be no more than a few: the reader brings them all, without a look at it before.
        Without a live channel the history is empty and entries arrive when it is back.
        """
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read_for_ever(), name="hub")
        try:
            async with self._turn:
                return await self._join(key, deliver, from_start, new)
        except (redis.RedisError, OSError) as error:
            log.warning("The live channel does not answer (%s).", error)
            stream = self._streams.setdefault(key, _Stream(b"0" if from_start else b"$"))
            if deliver not in stream.listeners:
                stream.listeners.append(deliver)
            return []

    def leave(self, key: str, deliver: Deliver) -> None:
        stream = self._streams.get(key)
        if stream and deliver in stream.listeners:
            stream.listeners.remove(deliver)
            if not stream.listeners:
                del self._streams[key]

    async def aclose(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        await self._redis.aclose()

    async def _join(self, key: str, deliver: Deliver, from_start: bool, new: bool) -> list[Entry]:
        if key not in self._streams:  # nobody follows it yet: from here on the reader does
            rows = []
            if not new:
                rows = await self._redis.xrange(key) if from_start else await self._redis.xrevrange(key, count=1)
            if key not in self._streams:
                self._streams[key] = _Stream(rows[-1 if from_start else 0][0] if rows else b"0-0", [deliver])
                async with self._redis.pipeline(transaction=False) as wake:
                    await (
                        wake.xadd(self._control, {"k": key}, maxlen=1)
                        .expire(self._control, live.ACTIVE_TTL_SECONDS)
                        .execute()
                    )
                return [_run_entry(fields) for _, fields in rows] if from_start else []
        stream = self._streams[key]
        early: list[Entry] = []  # what the reader brings while we look back
        listener = early.append if from_start else deliver
        stream.listeners.append(listener)
        if not from_start:
            return []
        try:
            rows = await self._redis.xrange(key, max=stream.position.decode())
            stream.listeners.append(deliver)
        finally:
            stream.listeners.remove(listener)
        return [_run_entry(fields) for _, fields in rows] + early

    async def _read_for_ever(self) -> None:
        while True:
            wanted = {self._control: self._control_position} | {key: s.position for key, s in self._streams.items()}
            try:
                answer = await self._redis.xread(wanted, count=AT_A_TIME, block=BLOCK_MS)
            except (redis.RedisError, OSError):
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for name, rows in answer or ():
                self._deliver(name.decode(), rows)

    def _deliver(self, key: str, rows: list[tuple[bytes, dict[bytes, bytes]]]) -> None:
        if key == self._control:
            self._control_position = rows[-1][0]
            return
        stream = self._streams.get(key)
        if stream is None:
            return
        stream.position = rows[-1][0]
        is_run = key.startswith("run:")
        for position, fields in rows:
            entry = _run_entry(fields) if is_run else _user_entry(position, fields)
            for deliver in list(stream.listeners):
                deliver(entry)


def _run_entry(fields: dict[bytes, bytes]) -> Entry:
    [(seq, body)] = fields.items()
    return (None if seq == b"-" else int(seq), body)


def _user_entry(position: bytes, fields: dict[bytes, bytes]) -> Entry:
    """An envelope of a user's own stream says where it stands there."""
    [body] = fields.values()
    return (None, b'{"cursor":"' + position + b'",' + body[1:])


_hubs: dict[int, Hub] = {}


def process_hub() -> Hub:
    """The hub of this event loop (a web process has one)."""
    loop = id(asyncio.get_running_loop())
    if loop not in _hubs:
        _hubs[loop] = Hub()
    return _hubs[loop]
