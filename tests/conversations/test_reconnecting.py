"""Whoever comes and goes, and whatever the live log loses, sees the same in the end.

Random scripts against the real parts: the worker's appender, Valkey, PostgreSQL, the hub and what follows it. A script
is one run: its events and words, faults of the log, and pages that connect and disconnect in the middle of it.
"""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from agentapp.database import in_thread
from conversations import hub, live, watch
from conversations.appender import Appender, RunLog
from conversations.events import KeyedEvent
from conversations.models import Run, RunEvent
from conversations.outbox import Outbox
from conversations.writer import Record, Written
from tests.factories import make_conversation, make_message, make_run, make_user

SCRIPTS, AT_ONCE, STEPS, PAGES = 520, 65, 24, 3


@dataclass
class State:
    """What a page knows of a run, by the rules of `docs/protocol.md`."""

    events: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    attempt: int = 0

    @property
    def seq(self) -> int:
        return len(self.events)

    def apply(self, body: dict[str, Any]) -> None:
        if body.get("type") == "snapshot":
            if body["answer"]["attempt"] > self.attempt:
                self.text, self.attempt = body["answer"]["text"], body["answer"]["attempt"]
            elif body["answer"]["attempt"] == self.attempt and len(body["answer"]["text"]) > len(self.text):
                self.text = body["answer"]["text"]
        elif "seq" not in body:
            self._delta(body["data"])
        elif body["seq"] > self.seq:
            assert body["seq"] == self.seq + 1, "an event is missing"
            self.events.append(body)
            if body["channel"] == "answer" and body["data"]["status"] == "start":
                # A lost entry that is filled in late may come after text of its attempt.
                if body["data"]["attempt"] > self.attempt:
                    self.text, self.attempt = "", body["data"]["attempt"]
            elif body["channel"] == "done":
                self.text = body["data"]["answer"]

    def _delta(self, data: dict[str, Any]) -> None:
        if data["attempt"] > self.attempt:
            self.text, self.attempt = "", data["attempt"]
        if data["attempt"] == self.attempt and data["offset"] <= len(self.text):
            fresh = data["content"][len(self.text) - data["offset"] :]
            assert self.text[data["offset"] :].startswith(data["content"][: len(data["content"]) - len(fresh)])
            self.text += fresh


class Connection:
    """A page while it is connected: applies what comes, at its own pace."""

    def __init__(self, run: Run, state: State, *, new: bool = False) -> None:
        self._outbox = Outbox(lambda: None)
        self._follow = watch.Follow(run.id, state.seq, self._outbox, watch.Snapshot.message, new=new)
        self._state = state
        self._task = asyncio.create_task(self._live())

    async def _live(self) -> None:
        beginning = asyncio.create_task(self._follow.begin())
        try:
            while not (self._state.events and self._state.events[-1]["channel"] == "done"):
                body = await self._outbox.get()
                if body is not None:
                    self._state.apply(orjson.loads(body))
            await beginning
        finally:
            beginning.cancel()
            await asyncio.gather(beginning, return_exceptions=True)
            self._follow.end()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def finish(self) -> None:
        await asyncio.wait_for(self._task, 20)


class Worker:
    """Does to rows and log what a worker's writer and appender do."""

    def __init__(self, run: Run, log: RunLog) -> None:
        self.run, self.log = run, log
        self.written: list[RunEvent] = []
        self.text, self.attempt = "", 0

    async def event(self, channel: str, data: dict[str, Any], *, appended: bool = True) -> None:
        seq = len(self.written) + 1
        event = KeyedEvent(f"event/{seq}", channel, data)
        record = Record(self.run.id, 1, [event])
        row = RunEvent(run=self.run, seq=seq, channel=channel, data=data, key=event.key, at=record.at)
        ended = {"status": "completed", "ended_at": record.at} if channel == "done" else {}
        self.written.append(row)

        def write() -> None:
            row.save(force_insert=True)
            Run.objects.filter(id=self.run.id).update(next_seq=seq + 1, **ended)

        await in_thread(write)
        if appended:
            committed: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
            committed.set_result(Written({event.key: seq}))
            self.log.events(committed, record)

    async def begin_answer(self) -> None:
        self.text, self.attempt = "", self.attempt + 1
        await self.event("answer", {"status": "start", "attempt": self.attempt})

    def say(self, words: str) -> None:
        self.log.delta(words, len(self.text), self.attempt)
        self.text += words


async def play(number: int, run: Run, appender: Appender, client: Any) -> None:
    chance = random.Random(number)  # noqa: S311 - a script that can be played again
    worker = Worker(run, appender.open(run.id, 1))
    steady, pages = State(), [State() for _ in range(PAGES)]
    connected: dict[int, Connection] = {}
    sent = chance.randrange(8)  # the page that sent the message is there from the beginning, or a little later
    for step in range(STEPS):
        if step == sent:
            always = Connection(run, steady, new=True)
        await _work(chance, worker, step)
        await _break(chance, run, client)
        page = chance.randrange(PAGES)
        if page in connected and chance.random() < 0.6:
            await connected.pop(page).close()
            if chance.random() < 0.3:
                pages[page] = State()  # reloaded
        elif page not in connected:
            connected[page] = Connection(run, pages[page])
        await asyncio.sleep(chance.choice((0, 0, 0.01)))
    fresh = State()
    everybody = [always, Connection(run, fresh), *connected.values()]
    everybody += [Connection(run, pages[page]) for page in range(PAGES) if page not in connected]
    worker.say("the end")
    async with asyncio.timeout(20):
        while any(state.text != worker.text for state in (steady, fresh, *pages)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await worker.event("done", {"status": "completed", "answer": worker.text}, appended=chance.random() < 0.9)
    await asyncio.gather(*(connection.finish() for connection in everybody))
    await worker.log.close()
    expected = [(row.seq, row.channel, row.data) for row in worker.written]
    for state in (fresh, steady, *pages):
        assert [(e["seq"], e["channel"], e["data"]) for e in state.events] == expected, f"script {number}"
        assert (state.text, state.attempt) == (worker.text, worker.attempt), f"script {number}"
        assert state.events == fresh.events


async def _work(chance: random.Random, worker: Worker, step: int) -> None:
    what = chance.random()
    if (worker.attempt == 0 and step > 4) or what < 0.05:
        await worker.begin_answer()
    elif worker.attempt and what < 0.7:
        for _ in range(chance.randrange(1, 6)):
            worker.say(chance.choice(("one ", "zwei ", "три ", "🙂 ", "five\n")))
    else:
        await worker.event("step", {"type": "note", "step": step}, appended=chance.random() < 0.95)


async def _break(chance: random.Random, run: Run, client: Any) -> None:
    """Sometimes the log is lost, whole or its latest entry."""
    what = chance.random()
    if what < 0.03:
        await client.delete(live.run_key(run.id), f"{live.run_key(run.id)}:epoch")
    elif what < 0.06:
        for entry, _ in await client.xrevrange(live.run_key(run.id), count=1):
            await client.xdel(live.run_key(run.id), entry)


def _runs() -> list[Run]:
    user = make_user()
    return [make_run(make_message(make_conversation(user)), status="running", epoch=1) for _ in range(SCRIPTS)]


@pytest.fixture(autouse=True)
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "CHECK_SECONDS", 0.2)


@pytest.mark.django_db(transaction=True)
async def test_random_reconnects_and_losses_end_in_the_same_state() -> None:
    runs = await in_thread(_runs)
    client = live.async_client()
    appender = Appender(live.async_client())
    for start in range(0, SCRIPTS, AT_ONCE):
        group = runs[start : start + AT_ONCE]
        await asyncio.gather(*(play(start + n, run, appender, client) for n, run in enumerate(group)))
    for part in (watch.process_follows(), hub.process_hub(), appender, client):
        await part.aclose()
