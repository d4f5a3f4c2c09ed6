"""The writer of journal records: fenced, grouped, the same record twice is one, a bad one harms no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from agentapp.database import in_thread
from conversations.errors import LeaseLost
from conversations.events import KeyedEvent
from conversations.models import Interrupt, Run
from conversations.writer import Record, Writer, Written
from tests.factories import make_conversation, make_message, make_run, make_user

pytestmark = pytest.mark.django_db(transaction=True)

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@asynccontextmanager
async def _writing() -> AsyncIterator[Writer]:
    writer = Writer()
    task = asyncio.create_task(writer.run())
    try:
        yield writer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _running_run(name: str = "ada", **fields: Any) -> Run:
    def make() -> Run:
        return make_run(make_message(make_conversation(make_user(name))), "running", epoch=1, **fields)

    return await in_thread(make)


async def _written(run: Run) -> tuple[list[tuple[int, str]], list[tuple[str, str]]]:
    events, calls = run.events.values_list("seq", "key"), run.calls.values_list("key", "state")
    return await in_thread(list, events), await in_thread(list, calls)


def _event(key: str) -> KeyedEvent:
    return KeyedEvent(key, "step", {"type": "thinking"})


def _call(key: str, state: str = "succeeded", kind: str = "tool") -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "key": key,
        "kind": kind,
        "request": {},
        "digest": "",
        "effect_class": "read",
        "state": state,
        "result": {"content": "42"},
        "error": "",
        "usage": {},
        "cost": 0,
        "started_at": now,
        "ended_at": now,
    }


async def test_the_same_record_twice_changes_nothing() -> None:
    run = await _running_run()
    record = Record(run.id, 1, [_event("a#0"), _event("a#1")], [_call("a")])
    async with _writing() as writer:
        assert await writer.submit(record) == ({"a#0": 1, "a#1": 2}, False)
        assert await writer.submit(record) == ({}, False)
        assert await writer.submit(Record(run.id, 1, [_event("b#0")])) == ({"b#0": 3}, False)
    assert await _written(run) == ([(1, "a#0"), (2, "a#1"), (3, "b#0")], [("a", "succeeded")])


async def test_the_start_of_a_call_hears_of_messages_that_wait_and_no_other_record_does() -> None:
    run, other = await _running_run(), await _running_run("bob")
    message = await in_thread(make_message, run.conversation)
    interrupt = await in_thread(Interrupt.objects.create, run=run, message=message)
    async with _writing() as writer:
        start = Record(run.id, 1, [], starts=True)
        assert (await writer.submit(start)).spoken_to
        assert not (await writer.submit(Record(run.id, 1, [_event("a#0")], [_call("a")]))).spoken_to
        assert not (await writer.submit(Record(other.id, 1, [], starts=True))).spoken_to
        interrupt.state = Interrupt.State.READ
        await in_thread(interrupt.save)
        assert not (await writer.submit(start)).spoken_to


@pytest.mark.parametrize("change", [{"epoch": 2}, {"status": "waiting"}])
async def test_a_record_of_a_lost_lease_affects_no_row(change: dict[str, Any]) -> None:
    run = await _running_run()
    await in_thread(Run.objects.filter(id=run.id).update, **change)
    async with _writing() as writer:
        with pytest.raises(LeaseLost):
            await writer.submit(Record(run.id, 1, [_event("a#0")], [_call("a")]))
    assert await _written(run) == ([], [])


async def test_after_a_stop_results_are_written_and_starts_are_refused() -> None:
    run = await _running_run(cancel_requested_at=timezone.now())
    async with _writing() as writer:
        with pytest.raises(LeaseLost):
            await writer.submit(Record(run.id, 1, [_event("b#0")], [_call("b", "started")], starts=True))
        await writer.submit(Record(run.id, 1, [_event("a#0")], [_call("a")]))
    assert await _written(run) == ([(1, "a#0")], [("a", "succeeded")])


@pytest.mark.parametrize(("state", "crashes"), [("succeeded", 0), ("failed", 2), ("started", 2)])
async def test_only_progress_makes_crashes_forgotten(state: str, crashes: int) -> None:
    run = await _running_run(crashes=2)
    async with _writing() as writer:
        await writer.submit(Record(run.id, 1, [], [_call("a", state)]))
    await in_thread(run.refresh_from_db)
    assert run.crashes == crashes


async def test_a_bad_record_takes_none_of_its_neighbours_with_it() -> None:
    runs = [await _running_run(f"person{n}") for n in range(3)]
    async with _writing() as writer:
        kinds = ["tool", "k" * 21, "tool"]
        futures = [
            writer.submit(Record(run.id, 1, [_event("a#0")], [_call("a", kind=kind)]))
            for run, kind in zip(runs, kinds, strict=True)
        ]
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        with pytest.raises(TypeError):
            writer.submit(Record(runs[0].id, 1, [], [{**_call("b"), "result": {("no", "JSON"): 1}}]))
        assert await writer.submit(Record(runs[1].id, 1, [_event("c#0")])) == ({"c#0": 1}, False)
    assert [type(outcome) for outcome in outcomes] == [Written, psycopg.errors.StringDataRightTruncation, Written]


async def test_records_of_one_run_that_wait_together_are_written_in_order_each_with_its_own_time_and_fate() -> None:
    run = await _running_run(cancel_requested_at=timezone.now())
    first, start, last = (
        Record(run.id, 1, [_event(f"{key}#0")], [_call(key)], starts=key == "b", at=AT + timedelta(seconds=n))
        for n, key in enumerate("abc")
    )
    async with _writing() as writer:
        futures = [writer.submit(record, at_once=record is last) for record in (first, start, last)]
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Written, LeaseLost, Written]
    assert await _written(run) == ([(1, "a#0"), (2, "c#0")], [("a", "succeeded"), ("c", "succeeded")])
    times = await in_thread(list, run.events.values_list("at", flat=True))
    assert times == [first.at, last.at]
