"""Circuit breakers of models, shared by all workers: here two of them, on one Valkey."""

from collections.abc import AsyncIterator
from itertools import count

import pytest

from tools_admin import health
from tools_admin.health import FAILURES, Health

models = count(1_000)


@pytest.fixture
def model() -> int:
    return next(models)


@pytest.fixture
async def workers(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Health, Health]]:
    monkeypatch.setattr(health, "REFRESH_SECONDS", 0)
    pair = Health(), Health()
    yield pair
    for worker in pair:
        await worker._redis.delete(health.KEY)
        await worker.aclose()


async def test_five_failures_in_a_row_of_all_workers_open_it_for_all(workers, model):
    one, two = workers
    for number in range(FAILURES):
        assert await one.may_call(model) and await two.may_call(model)
        await (one if number % 2 else two).failed(model)
    assert not await one.may_call(model)
    assert not await two.may_call(model)
    assert await one.may_call(model + 10_000)
    assert model in two.paused


async def test_an_answer_in_between_begins_the_count_anew(workers, model):
    one, two = workers
    for _ in range(FAILURES - 1):
        await one.failed(model)
    await two.refresh()
    await two.answered(model)
    await one.failed(model)
    assert await two.may_call(model)


@pytest.fixture
async def ended(workers, model, settings):
    """A breaker whose pause is over."""
    settings.MODEL_PAUSE_SECONDS = 0
    for _ in range(FAILURES):
        await workers[0].failed(model)
    settings.MODEL_PAUSE_SECONDS = 60


async def test_after_the_pause_one_call_tries_and_its_answer_closes_it(workers, model, ended):
    one, two = workers
    assert await one.may_call(model)
    assert not await two.may_call(model)
    await one.answered(model)
    assert await two.may_call(model) and await one.may_call(model)


async def test_a_probe_that_fails_opens_it_again(workers, model, ended):
    one, two = workers
    assert await one.may_call(model)
    await one.failed(model)
    assert not await two.may_call(model)
    assert health.present_health()[model].pause > 0


async def test_a_probe_that_was_stopped_leaves_its_place_to_the_next(workers, model, ended):
    one, two = workers
    assert await one.may_call(model)
    await one.gave_up(model)
    assert await two.may_call(model)


async def test_a_check_that_saw_it_answer_closes_it(workers, model, ended):
    health.forget(model)
    assert await workers[0].may_call(model) and await workers[1].may_call(model)


async def test_without_the_broker_every_model_counts_as_healthy(settings, model):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    alone = Health()
    for _ in range(FAILURES + 1):
        await alone.failed(model)
    assert await alone.may_call(model)
    await alone.aclose()
