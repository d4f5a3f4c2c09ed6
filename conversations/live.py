"""The live log of a run: a Redis stream with its durable events and answer deltas, in the order they happened.

PostgreSQL is the truth; the log only makes it quick. It may vanish at any time: then readers take durable events
from PostgreSQL and the text of an unfinished answer arrives with `done`.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import redis
import redis.asyncio
from django.conf import settings

from conversations.events import envelope
from conversations.writer import Record

log = logging.getLogger(__name__)

COALESCE_SECONDS = 0.04
RETRY_SECONDS = 0.25
CLOSING_SECONDS = 2.0
ACTIVE_TTL_SECONDS = 24 * 3600
ENDED_TTL_SECONDS = 300
WORKERS_KEY = "workers"  # a sorted set: worker → when it was last seen, for /readyz
USER_STREAM_LENGTH = 1_000

# KEYS: log, its epoch. ARGV: epoch, seconds to live, then pairs of seq ("" for a delta) and envelope.
# Refuses a worker whose lease went to another one.
APPEND = """
local held = tonumber(redis.call('GET', KEYS[2]) or '0')
if held > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[2])
for i = 3, #ARGV, 2 do redis.call('XADD', KEYS[1], '*', 's', ARGV[i], 'd', ARGV[i + 1]) end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""


def run_key(run: UUID | str) -> str:
    return f"run:{run}"


def user_key(user_id: int) -> str:
    return f"user:{user_id}"


def async_client() -> redis.asyncio.Redis:
    """A client for this event loop. Times out quickly: the live log must never hold up a run."""
    return redis.asyncio.from_url(settings.REDIS_URL, socket_connect_timeout=2, protocol=2)


_sync: list[redis.Redis] = []


def sync_client() -> redis.Redis:
    """The process's client for synchronous code."""
    if not _sync:
        _sync.append(redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2, protocol=2))
    return _sync[0]


def tell_user(user_id: int, channel: str, data: dict[str, Any]) -> None:
    """Appends to the user's own stream (lists and other tabs). Call it after commit; failing is harmless."""
    body = orjson.dumps({"channel": channel, "data": data, "at": datetime.now(UTC).isoformat(timespec="milliseconds")})
    try:
        with sync_client().pipeline(transaction=False) as pipe:
            pipe.xadd(user_key(user_id), {"d": body}, maxlen=USER_STREAM_LENGTH, approximate=True)
            pipe.expire(user_key(user_id), ACTIVE_TTL_SECONDS)
            pipe.execute()
    except redis.RedisError as error:
        log.warning("The live channel does not answer (%s); open pages catch up when it is back.", error)


def append_events(
    run: UUID, epoch: int, entries: Sequence[tuple[int, str, dict[str, Any], datetime]], *, ended: bool
) -> None:
    """Appends events that a transaction outside a worker's loop has written. Call it after commit."""
    arguments: list[Any] = [epoch, ENDED_TTL_SECONDS if ended else ACTIVE_TTL_SECONDS]
    for seq, channel, data, at in entries:
        arguments += [seq, envelope(run, seq, channel, data, at)]
    try:
        sync_client().eval(APPEND, 2, run_key(run), f"{run_key(run)}:epoch", *arguments)
    except redis.RedisError as error:
        log.warning("The live channel does not answer (%s); open pages catch up when it is back.", error)


class RunLog:
    """The only appender of a run in its worker: keeps the order, coalesces deltas, never makes the run wait."""

    def __init__(self, client: redis.asyncio.Redis, run: UUID, epoch: int) -> None:
        self._append = client.register_script(APPEND)
        self._run, self._epoch = run, epoch
        self._queue: asyncio.Queue[tuple[asyncio.Future[dict[str, int]], Record] | tuple[str, int, int]] = (
            asyncio.Queue()
        )
        self._urgent = asyncio.Event()
        self._closing_since = 0.0
        self._task = asyncio.create_task(self._work(), name=f"log of run {run}")

    def events(self, future: "asyncio.Future[dict[str, int]]", record: Record) -> None:
        """The record's events, as soon as they are committed."""
        self._queue.put_nowait((future, record))
        self._urgent.set()

    def delta(self, text: str, offset: int, attempt: int) -> None:
        self._queue.put_nowait((text, offset, attempt))

    async def close(self) -> None:
        """Appends what is left and stops."""
        self._closing_since = self._closing_since or time.monotonic()
        self._urgent.set()
        await self._queue.join()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            items = [await self._queue.get()]
            self._urgent.clear()
            while not self._queue.empty():
                items.append(self._queue.get_nowait())
            try:
                await self._append_until_done(await self._arguments(items))
            finally:
                for _ in items:
                    self._queue.task_done()
            if len(items[-1]) == 3:  # answer text: gather what comes in the next moment, unless an event comes
                await _wait_for(self._urgent, COALESCE_SECONDS)

    async def _arguments(self, items: list[Any]) -> list[Any]:
        """What the script takes: everything committed, in order, neighbouring deltas as one."""
        arguments: list[Any] = [self._epoch, ACTIVE_TTL_SECONDS]
        text, offset, attempt = "", 0, 0

        def flush() -> None:
            nonlocal text
            if text:
                data = {"status": "delta", "content": text, "offset": offset, "attempt": attempt}
                arguments.extend(["", envelope(self._run, None, "answer", data, datetime.now(UTC))])
                text = ""

        for item in items:
            if len(item) == 3:
                if text and item[2] != attempt:
                    flush()
                if not text:
                    _, offset, attempt = item
                text += item[0]
                continue
            flush()
            future, record = item
            try:
                numbers = await asyncio.shield(future)
            except Exception as error:  # noqa: BLE001 - whoever submitted the record handles it; here: not written
                log.debug("Events of run %s were not written: %s", self._run, error)
                continue
            for event in record.events:
                if event.key in numbers:
                    seq = numbers[event.key]
                    arguments += [seq, envelope(self._run, seq, event.channel, event.data, record.at)]
        flush()
        return arguments

    async def _append_until_done(self, arguments: list[Any]) -> None:
        """Waits for the live channel; once the run has ended, not for long: readers turn to PostgreSQL."""
        while len(arguments) > 2:
            try:
                await self._append(keys=[run_key(self._run), f"{run_key(self._run)}:epoch"], args=arguments)
                return
            except (redis.RedisError, OSError) as error:
                if self._closing_since and time.monotonic() > self._closing_since + CLOSING_SECONDS:
                    return
                log.warning("The live channel does not answer (%s); the run goes on.", error)
                await asyncio.sleep(RETRY_SECONDS)


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
