"""Watching a conversation: for each run that is not ended the missed events, a snapshot, then what comes."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import orjson
from django.db import DatabaseError

from accounts.models import User
from agentapp.database import in_thread
from conversations.errors import NotFound
from conversations.events import envelope
from conversations.hub import Entry, process_hub
from conversations.live import run_key
from conversations.models import Conversation, Run, RunEvent

log = logging.getLogger(__name__)

CHECK_SECONDS = 2.0

Send = Callable[[bytes], None]


class Watch:
    """One socket's view of one conversation."""

    def __init__(self, user: User, conversation: UUID, after: dict[UUID, int], send: Send) -> None:
        self._user, self._conversation, self._after, self._send = user, conversation, after, send
        self._followed: dict[UUID, Follow] = {}

    async def begin(self) -> None:
        """Raises NotFound when the conversation is not the user's."""
        for run in await in_thread(_runs_to_follow, self._user, self._conversation, list(self._after)):
            await self.follow(run)

    async def follow(self, run: UUID) -> None:
        if run not in self._followed:
            self._followed[run] = follow = Follow(run, self._after.get(run, 0), self._send)
            await follow.begin()

    def end(self) -> None:
        for follow in self._followed.values():
            follow.end()


class Follow:
    """One run on one socket: durable events in `seq` order without a gap, whatever order they become known in."""

    def __init__(self, run: UUID, seq: int, send: Send) -> None:
        self.run, self.seq = run, seq
        self._send = send
        self._held: list[Entry] | None = []  # entries that wait: for the snapshot, or for a hole to be filled

    async def begin(self) -> None:
        entries = await process_hub().join(run_key(self.run), self._deliver)
        position = max((seq for seq, _ in entries if seq is not None), default=None)
        status, missed = await in_thread(_missed, self.run, self.seq, position)
        for entry in missed:
            self._forward(entry)
        text, attempt = _answer_so_far(entries)
        answer = {"text": text, "attempt": attempt}
        snapshot = {"type": "snapshot", "run": str(self.run), "seq": self.seq, "status": status, "answer": answer}
        self._send(orjson.dumps(snapshot))
        self._release()
        process_follows().add(self)

    def end(self) -> None:
        process_hub().leave(run_key(self.run), self._deliver)
        process_follows().discard(self)

    async def fill(self) -> None:
        """Takes from PostgreSQL what the live log does not have."""
        if self._held is None:
            self._held = []
        _, missed = await in_thread(_missed, self.run, self.seq, None)
        for entry in missed:
            self._forward(entry)
        self._release()

    def _release(self) -> None:
        held, self._held = self._held or [], None
        for entry in held:
            self._deliver(entry)

    def _deliver(self, entry: Entry) -> None:
        if self._held is not None:
            self._held.append(entry)
        elif entry[0] is not None and entry[0] > self.seq + 1:
            self._held = [entry]
            process_follows().repair(self)
        else:
            self._forward(entry)

    def _forward(self, entry: Entry) -> None:
        seq, body = entry
        if seq is not None:
            if seq <= self.seq:
                return
            self.seq = seq
        self._send(body)


class Follows:
    """All followed runs of a web process. Every two seconds one query finds appends that never happened."""

    def __init__(self) -> None:
        self._all: set[Follow] = set()
        self._behind: set[Follow] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._keep(self._check_for_ever())

    def add(self, follow: Follow) -> None:
        self._all.add(follow)

    def discard(self, follow: Follow) -> None:
        self._all.discard(follow)

    def repair(self, follow: Follow) -> None:
        self._keep(follow.fill())

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check_for_ever(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            follows = list(self._all)
            if not follows:
                continue
            try:
                latest = await in_thread(_latest, {follow.run for follow in follows})
                behind = {follow for follow in follows if follow.seq < latest.get(follow.run, 0)}
                for follow in behind & self._behind:  # behind twice in a row: it will not come by itself
                    await follow.fill()
                self._behind = behind
            except DatabaseError as error:
                log.warning("The database does not answer: %s", str(error).strip()[:200])


_follows: dict[int, Follows] = {}


def process_follows() -> Follows:
    """The follows of this event loop (a web process has one)."""
    loop = id(asyncio.get_running_loop())
    if loop not in _follows:
        _follows[loop] = Follows()
    return _follows[loop]


def _runs_to_follow(user: User, conversation: UUID, known: list[UUID]) -> list[UUID]:
    if not Conversation.objects.visible_to(user).filter(id=conversation).exists():
        raise NotFound("conversation")
    runs = Run.objects.visible_to(user).filter(conversation=conversation)
    return list((runs.active() | runs.filter(id__in=known)).order_by("created_at").values_list("id", flat=True))


def _missed(run: UUID, after: int, upto: int | None) -> tuple[str, list[Entry]]:
    status = Run.objects.values_list("status", flat=True).filter(id=run).first() or "cancelled"
    rows = RunEvent.objects.filter(run=run, seq__gt=after).order_by("seq")
    if upto is not None:
        rows = rows.filter(seq__lte=upto)
    return status, [(row.seq, envelope(run, row.seq, row.channel, row.data, row.at)) for row in rows]


def _latest(runs: set[UUID]) -> dict[UUID, int]:
    return {run: next_seq - 1 for run, next_seq in Run.objects.filter(id__in=runs).values_list("id", "next_seq")}


def _answer_so_far(entries: list[Entry]) -> tuple[str, int]:
    text, attempt = "", 0
    for _, body in entries:
        event: dict[str, Any] = orjson.loads(body)
        if event["channel"] != "answer":
            continue
        data = event["data"]
        if data["status"] == "start":
            text, attempt = "", data["attempt"]
        elif data["status"] == "delta" and data["attempt"] == attempt:
            text = text[: data["offset"]] + data["content"]
    return text, attempt
