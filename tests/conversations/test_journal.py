"""The durable journal: what it waits for, and what it leaves open when a run is stopped."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from agentapp.database import in_thread
from agentapp.engine import CallKind, EffectClass
from conversations import live
from conversations.allotments import Amount
from conversations.appender import Appender
from conversations.journal import DatabaseJournal
from conversations.models import Run
from conversations.purse import Purse
from conversations.writer import Writer
from tests.factories import make_conversation, make_message, make_run, make_user

pytestmark = pytest.mark.django_db(transaction=True)

TOOL = {"name": "look", "arguments": {"at": "it"}, "call_id": "1"}


@asynccontextmanager
async def _journal(name: str = "ada", *, writing: bool = True) -> AsyncIterator[tuple[Run, DatabaseJournal]]:
    def make() -> Run:
        return make_run(make_message(make_conversation(make_user(name))), "running", epoch=1)

    run = await in_thread(make)
    writer, appender = Writer(), Appender(live.async_client())
    task = asyncio.create_task(writer.run()) if writing else None
    try:
        free: Any = SimpleNamespace(price=lambda *_: Amount())
        yield run, DatabaseJournal(run.id, 1, writer, appender.open(run.id, 1), {}, 0, Purse(run, None, free), free)
    finally:
        if task:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await appender.aclose()


async def _result() -> dict[str, Any]:
    return {"content": "seen", "is_error": False}


@pytest.mark.parametrize("effect_class", [EffectClass.PURE, EffectClass.READ])
async def test_the_record_of_a_repeatable_call_is_written_but_not_waited_for(effect_class: EffectClass) -> None:
    async with _journal() as (run, journal):
        await journal.call("react/1/tool/0", CallKind.TOOL, TOOL, _result, effect_class=effect_class)
        await journal.settled()
        assert await in_thread(list, run.calls.values_list("key", "state")) == [("react/1/tool/0", "succeeded")]
    async with _journal("eve", writing=False) as (_, journal):
        await asyncio.wait_for(journal.call("a", CallKind.TOOL, TOOL, _result, effect_class=effect_class), 5)


@pytest.mark.parametrize("effect_class", [EffectClass.IDEMPOTENT, EffectClass.ONCE])
async def test_nothing_that_changes_something_begins_before_its_start_is_written(effect_class: EffectClass) -> None:
    async with _journal(writing=False) as (_, journal):
        begun = asyncio.Event()

        async def effect() -> dict[str, Any]:
            begun.set()
            return {}

        call = asyncio.create_task(journal.call("a", CallKind.TOOL, TOOL, effect, effect_class=effect_class))
        await asyncio.wait([call], timeout=0.2)
        assert not begun.is_set()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)


async def test_a_record_that_cannot_be_written_fails_the_next_call_that_waits() -> None:
    async with _journal() as (_, journal):
        await journal.call("k" * 300, CallKind.TOOL, TOOL, _result)
        with pytest.raises(Exception, match="too long"):
            await journal.call("a", CallKind.TOOL, TOOL, _result, effect_class=EffectClass.ONCE)


async def test_a_delegation_that_is_broken_off_is_a_stopped_call() -> None:
    async with _journal() as (_, journal):
        asked = {"name": "colleague", "arguments": {"request": "look"}}
        await journal.call("react/1/tool/0/start", CallKind.PUBLISH, asked, _result)
        [row] = journal.closing()
        assert (row["key"], row["kind"], row["state"]) == ("react/1/tool/0", "tool", "cancelled")
        assert row["request"] == asked
        await journal.call("react/1/tool/0", CallKind.TOOL, {**asked, "call_id": "1"}, _result)
        assert journal.closing() == []
