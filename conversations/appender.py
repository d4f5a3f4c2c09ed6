"""How a worker's events get into the live logs: each run's own in their order, those of all runs together.

Answer text is gathered for a moment, so that a token costs a fraction of a message; the first words of an answer and
durable events go at once. A run never waits here, and while the live channel is away its entries do.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import redis
import redis.asyncio

from conversations import live
from conversations.events import deltas, envelope
from conversations.writer import Record, Written

log = logging.getLogger(__name__)

COALESCE_SECONDS = 0.025
RETRY_SECONDS = 0.25
CLOSING_SECONDS = 2.0

Committed = asyncio.Future[Written]
Entry = tuple[int | str, bytes]  # its seq, or NO_SEQ for a delta, and its envelope


@dataclass(slots=True)
class Text:
    """A piece of an answer: where it begins, and in which attempt."""

    content: str
    offset: int
    attempt: int


class Appender:
    """A worker process's only way into the live logs of its runs. It lives on the worker's loop."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self._redis = client
        self._append = client.register_script(live.APPEND)
        self._due: dict[RunLog, None] = {}  # a set that keeps its order
        self._work_there, self._hurry = asyncio.Event(), asyncio.Event()
        self._last = 0.0
        self._task: asyncio.Task[None] | None = None

    def open(self, run: UUID, epoch: int) -> "RunLog":
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="appender")
        return RunLog(self, run, epoch)

    def append(self, run_log: "RunLog", *, at_once: bool) -> None:
        """The run has something to append."""
        self._due[run_log] = None
        self._work_there.set()
        if at_once:
            self._hurry.set()

    async def aclose(self) -> None:
        """Whoever still has something to append closes its log before."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._redis.aclose()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._work_there.wait()
            await _wait_for(self._hurry, self._last + COALESCE_SECONDS - loop.time())
            self._work_there.clear()
            self._hurry.clear()
            self._last = loop.time()
            logs, self._due = list(self._due), {}
            try:
                await self._append_all(logs)
            except (redis.RedisError, OSError) as error:
                log.warning("The live channel does not answer (%s); %d runs go on.", error, len(logs))
                await asyncio.sleep(RETRY_SECONDS)
                for run_log in logs:
                    self.append(run_log, at_once=True)

    async def _append_all(self, logs: "list[RunLog]") -> None:
        keys: list[str] = []
        arguments: list[Any] = []
        logs = [run_log for run_log in logs if run_log.collect()]
        for run_log in logs:
            keys += run_log.keys
            arguments += [run_log.epoch, live.ACTIVE_TTL_SECONDS, run_log.known, len(run_log.unsent)]
            for entry in run_log.unsent:
                arguments += entry
        if not logs:
            return
        for run_log, length in zip(logs, await self._append(keys=keys, args=arguments), strict=True):
            run_log.appended(length)


class RunLog:
    """What one run in this worker has to append. `known` entries are in the log, `unsent` ones on their way."""

    def __init__(self, appender: Appender, run: UUID, epoch: int) -> None:
        self.run, self.epoch = str(run), epoch
        self.keys = live.run_keys(run)
        self.known = 0
        self.unsent: list[Entry] = []
        self._appender = appender
        self._items: deque[tuple[Committed, Record] | Text] = deque()
        self._drained = asyncio.Event()
        self._drained.set()
        # The text of the current attempt that was collected, and how many unsent entries stand before it.
        self._text: list[str] = []
        self._attempt = self._text_place = 0

    def events(self, committed: Committed, record: Record) -> None:
        """The record's events, as soon as they are committed."""
        self._add((committed, record))
        committed.add_done_callback(lambda _: self._appender.append(self, at_once=True))

    def delta(self, text: str, offset: int, attempt: int) -> None:
        self._add(Text(text, offset, attempt))
        self._appender.append(self, at_once=offset == 0)

    async def close(self) -> None:
        """Returns when everything is appended; without the live channel not much later: readers turn to PostgreSQL."""
        try:
            await asyncio.wait_for(self._drained.wait(), CLOSING_SECONDS)
        except TimeoutError:
            self._items.clear()
            self.unsent.clear()
            self._drained.set()

    def collect(self) -> bool:
        """Moves what is committed to `unsent`, in order, neighbouring pieces of text as one. Is there anything?"""
        while self._items:
            item = self._items[0]
            if isinstance(item, Text):
                self._collect_text(item)
            elif item[0].done():
                self._items.popleft()
                self._collect_events(*item)
            else:
                break
        if not self.unsent and not self._items:
            self._drained.set()
        return bool(self.unsent)

    def appended(self, length: int) -> None:
        """What the script said: the log's length, or why it took nothing."""
        if length == live.LOST:
            self._restore()
            return
        self.known = max(length, 0)
        self.unsent.clear()
        self._text_place = 0
        if not self._items:
            self._drained.set()

    def _add(self, item: tuple[Committed, Record] | Text) -> None:
        self._items.append(item)
        self._drained.clear()

    def _collect_text(self, first: Text) -> None:
        pieces = []
        while self._items and isinstance(item := self._items[0], Text) and item.attempt == first.attempt:
            pieces.append(item.content)
            self._items.popleft()
        if first.offset == 0:
            self._text.clear()
        self._attempt = first.attempt
        self._text += pieces
        self.unsent += self._deltas("".join(pieces), first.offset)

    def _collect_events(self, committed: Committed, record: Record) -> None:
        if committed.cancelled() or (error := committed.exception()):
            # Whoever submitted the record handles that; here it means: not written.
            log.debug("Events of run %s were not written: %s", self.run, None if committed.cancelled() else error)
            return
        for event in record.events:
            if (seq := committed.result().seqs.get(event.key)) is None:
                continue
            self.unsent.append((seq, envelope(self.run, seq, event.channel, event.data, record.at)))
            if event.channel == "answer" and event.data["status"] == "start":
                self._text.clear()
                self._text_place = len(self.unsent)

    def _restore(self) -> None:
        """The log is gone, with what was in it. Who comes later finds the text so far; PostgreSQL has the events."""
        log.warning("The live log of run %s was lost; it begins again with the answer so far.", self.run)
        before, after = self.unsent[: self._text_place], self.unsent[self._text_place :]
        text = "".join(self._text)
        self._text = [text]
        self.known = 0
        self.unsent = [*before, *self._deltas(text, 0), *(entry for entry in after if entry[0] != live.NO_SEQ)]
        self._appender.append(self, at_once=True)

    def _deltas(self, text: str, offset: int) -> Iterator[Entry]:
        return ((live.NO_SEQ, body) for body in deltas(self.run, text, offset, self._attempt))


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    if seconds <= 0 or event.is_set():
        return
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
