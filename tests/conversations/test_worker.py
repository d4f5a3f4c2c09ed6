"""A worker's loop: how runs get in, and that nothing keeps others out."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection

from conversations import worker as module
from conversations.attachments import add_attachment
from conversations.models import Run
from conversations.services import send_message
from conversations.worker import Worker
from tests.factories import make_user
from tests.product import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def worker() -> Iterator[Worker]:
    """One in this process. No model is there: whatever it executes ends as `no_model`."""
    made = Worker()
    yield made
    made.drain()
    made.wait_until_drained()
    for task in made._background:
        made.loop.call_soon_threadsafe(task.cancel)
    eventually(lambda: all(task.done() for task in made._background), "it is quiet")


def in_loop(worker: Worker, work: Any) -> Any:
    future: Future[Any] = asyncio.run_coroutine_threadsafe(work, worker.loop)
    return future.result(60)


@contextmanager
def another_session() -> Iterator[psycopg.Connection[Any]]:
    """A transaction that is none of ours, rolled back at the end."""
    parameters = connection.get_connection_params()
    keep = {name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if parameters.get(name)}
    with psycopg.connect(**keep) as session:
        yield session
        session.rollback()


def queued(text: str) -> Run:
    return send_message(make_user(f"user-{text}"), text).run


async def stop_before_it_begins(worker: Worker, run: Run) -> None:
    """Stops it in the moment between the claim and its first step."""
    beginning = asyncio.create_task(worker._begin(run.id))
    while run.id not in worker._runs:  # noqa: ASYNC110 - each turn of the loop counts
        await asyncio.sleep(0)
    worker._runs[run.id].stop("shutdown")
    held = await asyncio.wait_for(beginning, 20)
    assert held is not None
    await worker._hold(run.id, held)


def test_runs_that_are_stopped_before_they_begin_keep_nobody_out(worker: Worker) -> None:
    for number in range(module.BEGIN_AT_ONCE + 1):
        run = queued(f"stopped {number}")
        in_loop(worker, stop_before_it_begins(worker, run))
        run.refresh_from_db()
        assert (run.status, run.lease_owner) == ("queued", ""), "it is put back"
    other = queued("other")
    worker.run(other.id)
    eventually(lambda: Run.objects.get(id=other.id).ended_at, "another run begins and ends")


def test_a_run_that_waits_for_its_files_lets_others_begin(worker: Worker) -> None:
    user, slow = make_user("reader"), []
    for number in range(module.BEGIN_AT_ONCE):
        file = add_attachment(user, f"{number}.txt", b"A few words.")
        slow.append(send_message(user, "Read it", attachments=[file.id]).run)
    other = queued("other")
    with another_session() as session:
        session.execute("LOCK TABLE conversations_attachment IN SHARE MODE")  # what was read cannot be kept yet
        for run in (*slow, other):
            worker.run(run.id)
        eventually(lambda: Run.objects.get(id=other.id).ended_at, "it does not wait for the files of others")
        assert not any(Run.objects.get(id=run.id).ended_at for run in slow)
    eventually(lambda: all(Run.objects.get(id=run.id).ended_at for run in slow), "the others end as well")


def test_a_hint_that_comes_again_while_its_run_waits_for_a_place_is_one(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = asyncio.Semaphore(0)
    monkeypatch.setattr(worker, "_places", places)
    run = queued("patient")
    for _ in range(5):
        worker.run(run.id)
    eventually(lambda: len(worker._jobs) == 1, "four of the five are gone")
    assert Run.objects.get(id=run.id).status == "queued"
    worker.loop.call_soon_threadsafe(places.release)
    eventually(lambda: Run.objects.get(id=run.id).ended_at, "it gets the place")
    assert Run.objects.get(id=run.id).epoch == 2, "one claim, and its end"
