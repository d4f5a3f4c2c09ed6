"""Limits of a provider, held by all workers together: here two of them, on one Valkey."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest

from agentapp.engine import ModelPaused
from tools_admin import turnstile
from tools_admin.models import Provider
from tools_admin.turnstile import Turnstile

numbers = count(5_000)


def provider(**limits) -> Provider:
    return Provider(pk=next(numbers), name="Acme", **limits)


@pytest.fixture
async def workers() -> AsyncIterator[tuple[Turnstile, Turnstile]]:
    pair = Turnstile(), Turnstile()
    yield pair
    for worker in pair:
        await worker.aclose()


class Inside:
    """Counts who is inside at once."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0

    async def call(self, worker: Turnstile, row: Provider) -> None:
        async with worker.enter(row):
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.01)
            self.now -= 1


async def test_never_more_calls_at_once_than_allowed_and_all_get_their_turn(workers):
    row, inside = provider(max_concurrent=3), Inside()
    await asyncio.gather(*(inside.call(workers[number % 2], row) for number in range(20)))
    assert (inside.most, inside.total) == (3, 20)


async def test_without_limits_nothing_is_asked(workers, settings):
    row, inside = provider(), Inside()
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    await asyncio.gather(*(inside.call(Turnstile(), row) for _ in range(5)))
    assert inside.most == 5


async def test_a_waiting_call_can_be_cancelled_and_leaves_nothing_behind(workers):
    row, inside = provider(max_concurrent=1), Inside()
    async with workers[0].enter(row):
        waiting = [asyncio.create_task(inside.call(worker, row)) for worker in workers]
        await asyncio.wait(waiting, timeout=0.05)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert inside.total == 0
    await asyncio.wait_for(inside.call(workers[1], row), 5)


async def test_whoever_finds_no_place_in_time_is_told_that_the_model_is_busy(workers):
    row = provider(max_concurrent=1, timeout=0.05)
    async with workers[0].enter(row):
        with pytest.raises(ModelPaused, match="no place"):
            await Inside().call(workers[1], row)


async def test_the_place_of_a_dead_worker_is_free_after_its_hold(workers, monkeypatch):
    monkeypatch.setattr(turnstile, "HOLD_SECONDS", 0.2)
    row, inside = provider(max_concurrent=1), Inside()
    await workers[0]._enter((f"provider:{row.pk}:places", f"provider:{row.pk}:calls"), "dead", 1, 0)
    await asyncio.wait_for(inside.call(workers[1], row), 5)


async def test_a_long_call_keeps_its_place(workers, monkeypatch):
    monkeypatch.setattr(turnstile, "HOLD_SECONDS", 0.3)
    monkeypatch.setattr(turnstile, "RENEW_SECONDS", 0.05)
    row = provider(max_concurrent=1, timeout=0.8)
    async with workers[0].enter(row):
        with pytest.raises(ModelPaused):
            await Inside().call(workers[1], row)


async def test_calls_of_a_minute_are_counted_for_all(workers):
    row, inside = provider(requests_per_minute=4, timeout=0.2), Inside()
    calls = [inside.call(workers[number % 2], row) for number in range(6)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert inside.total == 4
    assert [type(outcome) for outcome in outcomes if outcome] == [ModelPaused] * 2


async def test_without_the_broker_nothing_is_limited(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    alone, inside = Turnstile(), Inside()
    row = provider(max_concurrent=1, requests_per_minute=1)
    await asyncio.gather(*(inside.call(alone, row) for _ in range(3)))
    assert inside.total == 3
    await alone.aclose()
