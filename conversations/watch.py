"""Watching runs: for each the missed events, a snapshot, then what comes, whatever breaks meanwhile."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from django.db import DatabaseError

from accounts.models import User
from agentapp.database import in_thread
from conversations.errors import NotFound
from conversations.events import channel_of, deltas
from conversations.hub import Entry, process_hub
from conversations.live import run_key
from conversations.missed import PAGE, answer_so_far, latest_seqs, missed
from conversations.models import Conversation, Run
from conversations.outbox import LIMIT_BYTES, Outbox

log = logging.getLogger(__name__)

CHECK_SECONDS = 2.0
SNAPSHOT_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How a run stands after the missed events: the answer's text so far."""

    run: UUID
    seq: int
    status: str
    text: str
    attempt: int

    def message(self) -> Iterable[bytes]:
        """As the page's socket gets it; a very long text goes on as deltas, for a message has a greatest size."""
        answer = {"text": self.text[:SNAPSHOT_CHARS], "attempt": self.attempt}
        body = {"type": "snapshot", "run": str(self.run), "seq": self.seq, "status": self.status, "answer": answer}
        yield orjson.dumps(body)
        yield from deltas(self.run, self.text[SNAPSHOT_CHARS:], SNAPSHOT_CHARS, self.attempt)


Show = Callable[[Snapshot], Iterable[bytes]]


class Watch:
    """One socket's view of one conversation."""

    def __init__(self, user: User, conversation: UUID, after: dict[UUID, int], outbox: Outbox) -> None:
        self._user, self._conversation, self._after, self._outbox = user, conversation, after, outbox
        self._followed: dict[UUID, Follow] = {}

    async def begin(self) -> None:
        """Raises NotFound when the conversation is not the user's."""
        for run in await in_thread(_runs_to_follow, self._user, self._conversation, list(self._after)):
            await self.follow(run)

    async def follow(self, run: UUID, *, new: bool = False) -> None:
        if run not in self._followed:
            follow = Follow(run, self._after.get(run, 0), self._outbox, Snapshot.message, new=new)
            self._followed[run] = follow
            try:
                await follow.begin()
            except BaseException:
                del self._followed[run]
                raise

    def end(self) -> None:
        for follow in self._followed.values():
            follow.end()


class Follow:
    """One run for one client: durable events in `seq` order without a gap, whatever order they become known in.

    A `new` run was queued by this client's request: nothing was missed that its live log does not have.
    It ends by itself after `done`; then `ended` is set.
    """

    def __init__(self, run: UUID, seq: int, outbox: Outbox, show: Show, *, new: bool = False) -> None:
        self.run, self.seq, self._new = run, seq, new
        self.ended = asyncio.Event()
        self._outbox, self._show = outbox, show
        # Entries that wait for the snapshot, or for a hole to be filled; None: they go out as they come.
        self._held: deque[Entry] | None = deque()
        self._held_bytes = 0
        self._filling = False

    async def begin(self) -> None:
        try:
            entries = await process_hub().join(run_key(self.run), self._deliver, new=self._new)
            if self._new:  # a question to the database would wait behind all that others send at this moment
                status, text, attempt = str(Run.Status.QUEUED), "", 0
                held, self._held, self._held_bytes = self._held or (), deque(), 0
                for entry in (*entries, *held):
                    self._hold(self._held, entry)
            else:
                status = await self._catch_up(max((seq for seq, _ in entries if seq is not None), default=None))
                text, attempt = answer_so_far(entries)
            for body in self._show(Snapshot(self.run, self.seq, status, text, attempt)):
                await self._outbox.offer(body)
            if status not in Run.ACTIVE:
                self.end()
                return
            process_follows().add(self)
            if not await self._release():
                await self.fill()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Nothing comes any more."""
        process_hub().leave(run_key(self.run), self._deliver)
        process_follows().discard(self)
        self.ended.set()

    async def fill(self) -> None:
        """Takes from PostgreSQL what the live log does not have."""
        if self._filling:
            return
        self._filling = True
        try:
            if self._held is None:
                self._held = deque()
            known = -1
            while True:
                known = self.seq
                await self._catch_up(None)
                if await self._release(over_holes=known == self.seq):  # what PostgreSQL lacks will never come
                    return
        finally:
            self._filling = False

    async def _catch_up(self, upto: int | None) -> str:
        """The missed events, as many as the client takes at a time. Gives the run's status."""
        while True:
            status, events = await in_thread(missed, self.run, self.seq, upto)
            for seq, body in events:
                if self._is_next(seq, body):
                    await self._outbox.offer(body)
            if len(events) < PAGE:
                return status

    async def _release(self, *, over_holes: bool = False) -> bool:
        """Lets held entries go; False at a hole, where they stay held."""
        while self._held:
            seq, body = self._held[0]
            if seq is not None and seq > self.seq + 1 and not over_holes:
                return False
            self._held.popleft()
            self._held_bytes -= len(body)
            if self._is_next(seq, body):
                await self._outbox.offer(body)
        self._held = None
        return True

    def _deliver(self, entry: Entry) -> None:
        seq, body = entry
        if self._held is not None:
            self._hold(self._held, entry)
        elif seq is not None and seq > self.seq + 1:
            self._held = deque()
            self._hold(self._held, entry)
            process_follows().repair(self)
        elif self._is_next(seq, body):
            self._outbox.put(body)

    def _hold(self, held: deque[Entry], entry: Entry) -> None:
        held.append(entry)
        self._held_bytes += len(entry[1])
        if self._held_bytes > LIMIT_BYTES:
            self._outbox.fail()

    def _is_next(self, seq: int | None, body: bytes) -> bool:
        if seq is None:
            return True
        if seq <= self.seq:
            return False
        self.seq = seq
        if channel_of(body) == b"done":
            asyncio.get_running_loop().call_soon(self.end)
        return True


class Follows:
    """All followed runs of a web process. Every two seconds one query finds appends that never happened."""

    def __init__(self) -> None:
        self._all: set[Follow] = set()
        self._behind: set[Follow] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._keep(self._check_for_ever())

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def add(self, follow: Follow) -> None:
        self._all.add(follow)

    def discard(self, follow: Follow) -> None:
        self._all.discard(follow)

    def repair(self, follow: Follow) -> None:
        self._keep(self._fill(follow))

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fill(self, follow: Follow) -> None:
        try:
            await follow.fill()
        except DatabaseError as error:
            log.warning("The database does not answer: %s; the next check tries again.", str(error).strip()[:200])

    async def _check_for_ever(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            follows = list(self._all)
            if not follows:
                continue
            try:
                latest = await in_thread(latest_seqs, {follow.run for follow in follows})
            except DatabaseError as error:
                log.warning("The database does not answer: %s", str(error).strip()[:200])
                continue
            for follow in follows:
                if follow.run not in latest:  # deleted, and its `done` was lost
                    follow.end()
            behind = {follow for follow in follows if follow.seq < latest.get(follow.run, 0)}
            for follow in behind & self._behind:  # behind twice in a row: it will not come by itself
                self.repair(follow)
            self._behind = behind


_follows: dict[int, Follows] = {}


def process_follows() -> Follows:
    """The follows of this event loop (a web process has one)."""
    loop = id(asyncio.get_running_loop())
    if loop not in _follows:
        _follows[loop] = Follows()
    return _follows[loop]


async def wait_for_end(run: UUID, seconds: float) -> None:
    """Returns when the run has ended, at latest after `seconds`."""
    follow = Follow(run, 0, _nothing(), lambda _: ())
    try:
        await follow.begin()
        await asyncio.wait_for(follow.ended.wait(), seconds)
    except TimeoutError:
        return
    finally:
        follow.end()


def _nothing() -> Outbox:
    outbox = Outbox(lambda: None)
    outbox.close()
    return outbox


def _runs_to_follow(user: User, conversation: UUID, known: list[UUID]) -> list[UUID]:
    if not Conversation.objects.visible_to(user).filter(id=conversation).exists():
        raise NotFound("conversation")
    runs = Run.objects.visible_to(user).filter(conversation=conversation)
    return list((runs.active() | runs.filter(id__in=known)).order_by("created_at").values_list("id", flat=True))
