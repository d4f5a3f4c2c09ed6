"""The live log itself: who may write, and what becomes of a run whose log is lost."""

import asyncio
import logging
from uuid import uuid4

import pytest
import redis
import redis.asyncio

from conversations import live
from conversations.appender import Appender
from conversations.events import DELTA_CHARS, MAX_EVENT_BYTES
from conversations.hub import Hub
from tests.conversations.test_socket import page, send
from tests.product import Product, eventually


async def _entries(client: "redis.asyncio.Redis", run: object) -> list[bytes]:
    return [body for _, fields in await client.xrange(live.run_key(str(run))) for body in fields.values()]


async def test_a_worker_that_lost_its_run_appends_nothing() -> None:
    run, client = uuid4(), live.async_client()
    appender, zombies = Appender(live.async_client()), Appender(live.async_client())
    old, new = zombies.open(run, 1), appender.open(run, 2)
    old.delta("before", 0, 1)
    await old.close()
    new.delta("now", 0, 2)
    await new.close()
    old.delta("late", 6, 1)
    await old.close()
    bodies = await _entries(client, run)
    for part in (appender, zombies, client):
        await part.aclose()
    assert [b"before" in bodies[0], b"now" in bodies[1], len(bodies)] == [True, True, 2]


async def test_a_long_text_is_cut_into_events_of_the_allowed_size() -> None:
    run, client = uuid4(), live.async_client()
    appender = Appender(live.async_client())
    log = appender.open(run, 1)
    log.delta("\x01" * (3 * DELTA_CHARS + 1), 0, 1)
    await log.close()
    bodies = await _entries(client, run)
    for part in (appender, client):
        await part.aclose()
    assert len(bodies) == 4
    assert max(map(len, bodies)) <= MAX_EVENT_BYTES


async def test_the_first_words_are_not_held_back_and_later_ones_are_gathered() -> None:
    run, client = uuid4(), live.async_client()
    appender = Appender(live.async_client())
    log = appender.open(run, 1)
    for offset in range(100):
        log.delta("x", offset, 1)
        if offset == 0:
            await log.close()
    await log.close()
    bodies = await _entries(client, run)
    for part in (appender, client):
        await part.aclose()
    assert [b'"offset":0' in bodies[0], len(bodies)] == [True, 2]


def test_a_lost_log_loses_no_event_and_no_word(product: Product) -> None:
    product.model.token_delay = 0.01
    person = product.person()
    with page(product, person) as first, page(product, person) as late:
        ack = send(first, "Tell a long story")
        run = ack["run"]
        first.until(lambda b: len(first.text.get(run, "")) > 300)
        with redis.Redis.from_url(product.environment["REDIS_URL"], protocol=2) as client:
            client.flushall()
            eventually(lambda: client.exists(f"run:{run}"), "the log is there again")
        late.send(type="watch", conversation=ack["conversation"])
        late.until(lambda b: len(late.text.get(run, "")) > 300)
        done = first.ended(run)
        late.ended(run)
    assert first.text[run] == late.text[run] == done["data"]["answer"]
    assert first.events == late.events
    assert [event["seq"] for event in first.events] == list(range(1, len(first.events) + 1))
    with page(product, person) as again:  # and the next run starts, though the broker's queue was lost as well
        again.ended(send(again, "Hello", "c2")["run"])


async def test_hundreds_of_pages_that_open_at_once_all_get_their_history(caplog: pytest.LogCaptureFixture) -> None:
    run, client, hub = uuid4(), live.async_client(), Hub()
    appender = Appender(live.async_client())
    log = appender.open(run, 1)
    log.delta("so far", 0, 1)
    await log.close()
    with caplog.at_level(logging.WARNING):
        histories = await asyncio.gather(*(hub.join(live.run_key(run), [].append) for _ in range(400)))
    for part in (hub, appender, client):
        await part.aclose()
    assert [len(history) for history in histories] == [1] * 400
    assert caplog.messages == []
