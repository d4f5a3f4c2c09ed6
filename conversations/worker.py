"""A worker process: all its runs share one asyncio loop, one journal writer, one heartbeat, one wake-up channel."""

import asyncio
import gc
import logging
import os
import socket
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import redis
from django.conf import settings
from django.db import Error as DatabaseError

from agentapp.database import in_thread
from conversations import claims, live
from conversations.appender import Appender
from conversations.crash_points import reach
from conversations.permission import Permissions
from conversations.priming import prime_demo_model
from conversations.reading import read_documents
from conversations.runner import RunExecution
from conversations.writer import Writer
from tools_admin.clients import ModelClients

log = logging.getLogger(__name__)

RUNS_AT_ONCE = 256
BEGIN_AT_ONCE = 2  # runs of a burst: the first ones reach their models while others still wait to be claimed
READ_AT_ONCE = 2  # documents that nobody waits for yet


@dataclass(slots=True)
class _Held:
    """A run in this worker's hands, and why it is being stopped."""

    execution: RunExecution
    task: asyncio.Task[None]
    reason: str = ""

    def stop(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.task.cancel()


class Worker:
    """Lives as long as its process. What has no underscore is called from Celery's threads, the rest on the loop."""

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:6]}"
        self.loop = asyncio.new_event_loop()
        self._writer = Writer()
        self._redis = live.async_client()
        self._appender = Appender(live.async_client())
        self._models = ModelClients()
        self._permissions = Permissions()
        self._runs: dict[UUID, _Held] = {}
        self._expected: set[UUID] = set()  # runs that wait for a place here
        self._comparisons: set[asyncio.Task[None]] = set()
        self._jobs: set[asyncio.Task[None]] = set()
        self._draining = False
        self._places = asyncio.Semaphore(RUNS_AT_ONCE)
        self._beginning = asyncio.Semaphore(BEGIN_AT_ONCE)
        self._reader = asyncio.Semaphore(READ_AT_ONCE)
        self._background: list[asyncio.Task[None]] = []
        threading.Thread(target=self._live, name="runs", daemon=True).start()

    def run(self, run_id: UUID) -> None:
        """Executes a run, if it can be claimed when there is a place for it. Like the next two it returns at once."""
        self._keep(self._run(run_id))

    def compare(self, comparison_id: UUID) -> None:
        """The same for a comparison of routes."""
        self._keep(self._compare(comparison_id))

    def read(self, attachment_id: UUID) -> None:
        """Has an attached document read. Nobody waits for it: whoever comes to need it reads it."""
        asyncio.run_coroutine_threadsafe(self._read(attachment_id), self.loop)

    def drain(self) -> None:
        """Takes no new runs; what is still going on after the grace time goes back into the queue."""
        self._draining = True
        self.loop.call_soon_threadsafe(
            self.loop.call_later, settings.SHUTDOWN_GRACE_SECONDS, self._stop_all, "shutdown"
        )

    def wait_until_drained(self) -> None:
        """Returns when nothing is in its hands any more; at once when nobody asked it to go."""
        if self._draining:
            asyncio.run_coroutine_threadsafe(self._finish(), self.loop).result()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        def begin() -> None:
            job = self.loop.create_task(work)
            self._jobs.add(job)
            job.add_done_callback(self._jobs.discard)

        self.loop.call_soon_threadsafe(begin)

    async def _finish(self) -> None:
        while self._jobs:
            await asyncio.wait(self._jobs)

    def _live(self) -> None:
        asyncio.set_event_loop(self.loop)
        # Collections need not walk what was imported: a third less of them under load.
        gc.collect()
        gc.freeze()
        jobs = (
            self._writer.run(),
            self._beat_for_ever(),
            self._listen_for_ever(),
            prime_demo_model(self._models),
        )
        self._background = [self.loop.create_task(job) for job in jobs]
        self.loop.run_forever()

    async def _run(self, run_id: UUID) -> None:
        if run_id in self._expected:
            return
        if run_id in self._runs:
            await self._renew()  # its own lease may have run out, as in an outage of the database
            return
        self._expected.add(run_id)
        try:
            async with self._places:
                try:
                    held = await self._begin(run_id)
                finally:
                    self._expected.discard(run_id)
                if held:
                    await self._hold(run_id, held)
        except DatabaseError as error:
            log.warning("The database does not answer (%s); run %s waits for the sweeper.", error, run_id)
        except Exception:
            log.exception("Run %s is out of this worker's hands; the sweeper finds it.", run_id)

    async def _begin(self, run_id: UUID) -> _Held | None:
        async with self._beginning:
            if self._draining:
                return None  # the row stays queued; the sweeper gives it to another worker
            claimed = await in_thread(claims.claim, run_id, self.name)
            if claimed is None:
                return None
            reach("K2")
            execution = RunExecution(claimed, self._writer, self._appender, self._models, self._permissions)
            held = _Held(execution, asyncio.create_task(execution.execute(), name=f"run {run_id}"))
            held.task.add_done_callback(lambda _: execution.begun.set())  # one that is stopped first may never begin
            self._runs[run_id] = held
            await execution.begun.wait()
        return held

    async def _hold(self, run_id: UUID, held: _Held) -> None:
        """Until it is out of this worker's hands."""
        try:
            await asyncio.wait([held.task])
        finally:
            if self._runs.get(run_id) is held:
                del self._runs[run_id]
        if held.task.cancelled():
            await held.execution.stop(held.reason)
        elif error := held.task.exception():
            raise error

    async def _compare(self, comparison_id: UUID) -> None:
        from conversations.comparison.running import execute

        if self._draining:
            return
        job = asyncio.create_task(execute(comparison_id, self._models, self._permissions))
        self._comparisons.add(job)
        job.add_done_callback(self._comparisons.discard)
        await asyncio.wait([job])  # it says itself what went wrong, and puts itself back when it is cancelled

    async def _read(self, attachment_id: UUID) -> None:
        async with self._reader:
            try:
                await read_documents([attachment_id])
            except Exception:
                log.exception("Attachment %s was not read; the run that it is for tries again.", attachment_id)

    def _stop_all(self, reason: str) -> None:
        for held in self._runs.values():
            held.stop(reason)
        for job in self._comparisons:
            job.cancel()

    async def _beat_for_ever(self) -> None:
        while True:
            try:
                await self._redis.zadd(live.WORKERS_KEY, {self.name: time.time()})
            except (redis.RedisError, OSError) as error:
                log.warning("The live channel does not answer (%s).", error)
            try:
                await self._renew()
            except DatabaseError as error:
                log.warning("The database does not answer (%s); leases are not renewed.", str(error).strip()[:200])
            await asyncio.sleep(settings.RUN_HEARTBEAT_SECONDS)

    async def _renew(self) -> None:
        mine = dict(self._runs)
        if not mine:
            return
        epochs = {run_id: held.execution.claimed.epoch for run_id, held in mine.items()}
        renewed = await in_thread(claims.renew, self.name, epochs)
        for run_id, held in mine.items():
            if run_id not in renewed.held:
                held.stop("lease")
            elif run_id in renewed.stopped:
                held.stop("user")
            elif run_id in renewed.spoken_to:
                await held.execution.read_interrupts()

    async def _look_at(self, run_id: UUID) -> None:
        """Somebody stopped this run, said something to it, or took it back."""
        if held := self._runs.get(run_id):
            await self._renew()
            await held.execution.read_interrupts()

    async def _listen_for_ever(self) -> None:
        """Wake-ups make a stop felt at once; without them the heartbeat sees it a little later."""
        while True:
            try:
                async with self._redis.pubsub() as channel:
                    await channel.subscribe("wake")
                    async for message in channel.listen():
                        if message["type"] == "message":
                            await self._look_at(UUID(message["data"].decode()))
            except (redis.RedisError, OSError, DatabaseError) as error:
                log.warning("The live channel does not answer (%s); listening again in a second.", error)
                await asyncio.sleep(1)


_worker: list[Worker] = []
_lock = threading.Lock()


def process_worker() -> Worker:
    """The worker of this process, started on first use."""
    with _lock:
        if not _worker:
            _worker.append(Worker())
    return _worker[0]
