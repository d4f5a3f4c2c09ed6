"""Who works on a run: one worker at a time, and never nobody."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections, transaction
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from conversations import claims
from conversations.models import Run
from tests.factories import make_conversation, make_message, make_run, make_user
from tests.product import eventually

PAST = timedelta(seconds=-1)


@pytest.fixture
def run(db: None) -> Run:
    return make_run(make_message(make_conversation(make_user())))


def _lease(run: Run, seconds: float, **fields: Any) -> None:
    expires = timezone.now() + timedelta(seconds=seconds)
    Run.objects.filter(id=run.id).update(status="running", lease_expires_at=expires, **fields)


@pytest.mark.django_db(transaction=True)
def test_of_fifty_deliveries_at_once_one_claims() -> None:
    run = make_run(make_message(make_conversation(make_user())))

    def deliver(number: int) -> claims.Claim | None:
        try:
            return claims.claim(run.id, f"worker {number}")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        won = [claim for claim in threads.map(deliver, range(50)) if claim]
    assert [claim.epoch for claim in won] == [1]


def test_a_held_lease_is_respected_and_an_expired_one_counts_as_a_crash(run: Run) -> None:
    _lease(run, 9, epoch=1)
    assert claims.claim(run.id, "other") is None
    _lease(run, -1)
    assert claims.claim(run.id, "other") == claims.Claim(run.id, 2, crashes=1)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_an_ended_run_is_never_claimed(run: Run, status: str) -> None:
    Run.objects.filter(id=run.id).update(status=status, ended_at=timezone.now())
    assert claims.claim(run.id, "late") is None


def test_a_heartbeat_tells_lost_runs_from_stopped_ones(run: Run) -> None:
    claimed = claims.claim(run.id, "me")
    assert claimed
    assert claims.renew("me", {run.id: claimed.epoch}) == ({run.id}, set(), set())
    Run.objects.filter(id=run.id).update(cancel_requested_at=timezone.now())
    assert claims.renew("me", {run.id: claimed.epoch}) == ({run.id}, {run.id}, set())
    Run.objects.filter(id=run.id).update(epoch=9)
    assert claims.renew("me", {run.id: claimed.epoch}) == (set(), set(), set())


@pytest.mark.django_db(transaction=True)
def test_a_heartbeat_that_waits_for_a_run_holds_none_behind_it() -> None:
    """Records are written in the order of their runs' ids: a heartbeat in another one would meet them in a deadlock."""
    runs = [make_run(make_message(make_conversation(make_user(f"user-{n}")))) for n in range(5)]
    claimed = [claims.claim(run.id, "me") for run in sorted(runs, key=lambda run: run.id, reverse=True)]
    epochs = {claim.run: claim.epoch for claim in claimed if claim}
    *before, held, behind, last = sorted(epochs)

    def renew() -> claims.Renewed:
        try:
            return claims.renew("me", epochs)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            Run.objects.select_for_update().get(id=held)
            renewed = threads.submit(renew)
            eventually(_someone_waits, "the heartbeat waits")
            free = Run.objects.select_for_update(skip_locked=True).filter(id__in=epochs)
            assert set(free.values_list("id", flat=True)) == {held, behind, last}
        assert renewed.result(20).held == {*before, held, behind, last}


def _someone_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


def test_the_sweeper_finds_what_nobody_works_on(run: Run, settings: Settings) -> None:
    settings.RUN_LEASE_SECONDS = 0.0  # the database has been up for longer

    def due() -> bool:
        with transaction.atomic():
            return run.id in claims.due_runs()

    assert due()  # its message was lost
    assert not due()  # enqueued just now
    _lease(run, 9)
    assert not due()
    _lease(run, -1)
    assert due()  # its worker died
    Run.objects.filter(id=run.id).update(status="queued", retry_at=timezone.now() + timedelta(seconds=60))
    assert not due()  # its model is given time
    Run.objects.filter(id=run.id).update(retry_at=timezone.now() + PAST)
    assert due()


def test_after_a_restart_of_the_database_workers_that_waited_for_it_come_first(run: Run, settings: Settings) -> None:
    settings.RUN_LEASE_SECONDS = 1e6
    _lease(run, -1)
    with transaction.atomic():
        assert run.id not in claims.due_runs()


def test_a_conversation_has_one_active_run(run: Run) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        make_run(run.message)


def _runs_of(user: User, count: int, **fields: Any) -> list[Run]:
    return [make_run(make_message(make_conversation(user)), **fields) for _ in range(count)]


@pytest.mark.django_db(transaction=True)
def test_a_persons_runs_take_no_more_than_their_places(settings: Settings) -> None:
    settings.MAX_RUNNING_RUNS = 3
    runs = _runs_of(make_user("ada"), 12)
    other = make_run(make_message(make_conversation(make_user("grace"))))

    def deliver(run: Run) -> bool:
        try:
            return claims.claim(run.id, "worker") is not None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(deliver, runs)) == 3
    assert claims.claim(other.id, "worker"), "nobody else is held up"
    Run.objects.update(enqueued_at=None)
    with transaction.atomic():
        assert claims.due_runs() == [], "the sweeper leaves those alone that may not begin"


@pytest.mark.django_db
def test_a_place_that_becomes_free_is_the_oldest_runs(settings: Settings) -> None:
    settings.MAX_RUNNING_RUNS = 2
    user = make_user("ada")
    runs = _runs_of(user, 4)
    assert all(claims.claim(run.id, "worker") for run in runs[:2])
    assert claims.next_runs(user.pk) == []
    Run.objects.filter(id=runs[0].id).update(status="completed", ended_at=timezone.now())
    assert claims.next_runs(user.pk) == [runs[2].id]
    assert claims.claim(runs[2].id, "worker")


@pytest.mark.django_db
def test_a_run_whose_worker_died_keeps_its_place(settings: Settings) -> None:
    settings.MAX_RUNNING_RUNS = 1
    (run,) = _runs_of(make_user("ada"), 1)
    _lease(run, -1)
    assert claims.claim(run.id, "another worker")
