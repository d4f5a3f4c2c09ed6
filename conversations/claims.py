"""Who works on a run: claim, heartbeat, sweep. Each is one statement; the clock is the database's."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from agentapp.database import prepared_cursor
from conversations.models import Run

MAX_CRASHES = 3


@dataclass(frozen=True, slots=True)
class Claim:
    """`resumed`: something is on record of it. `spoken_to`: messages wait for it."""

    run: UUID
    epoch: int
    crashes: int
    resumed: bool = False
    spoken_to: bool = False


class Renewed(NamedTuple):
    """Of a worker's runs: those it still holds, and of these the ones to be stopped and the ones spoken to."""

    held: set[UUID]
    stopped: set[UUID]
    spoken_to: set[UUID]


def claim(run_id: UUID, owner: str) -> Claim | None:
    """Takes the run for one lease, or None: it ended, waits, belongs to another worker, or does not exist.

    However often the message is delivered, one claim wins. A claim over an expired lease counts as a crash. A person's
    runs beyond `MAX_RUNNING_RUNS` stay queued: so nobody's burst keeps all workers from the others.
    """
    most = settings.MAX_RUNNING_RUNS
    with transaction.atomic(), prepared_cursor() as cursor:
        if most:  # claims of one person go one by one, or two would take the last place
            cursor.execute(
                "SELECT 1 FROM accounts_user WHERE id = (SELECT user_id FROM conversations_run WHERE id = %s) "
                "FOR NO KEY UPDATE",
                [run_id],
            )
        cursor.execute(
            """
            UPDATE conversations_run SET
                crashes = CASE WHEN status = 'running' THEN crashes + 1 ELSE crashes END,
                status = 'running', reason = '', epoch = epoch + 1, lease_owner = %s,
                lease_expires_at = now() + make_interval(secs => %s), started_at = coalesce(started_at, now())
            WHERE id = %s AND status IN ('queued', 'running')
                AND (lease_expires_at IS NULL OR lease_expires_at < now())
                AND (%s = 0 OR status = 'running' OR %s > (
                    SELECT count(*) FROM conversations_run going
                    WHERE going.user_id = conversations_run.user_id AND going.status = 'running'))
            RETURNING epoch, crashes,
                EXISTS (SELECT 1 FROM conversations_call call WHERE call.run_id = conversations_run.id),
                EXISTS (SELECT 1 FROM conversations_interrupt said
                        WHERE said.run_id = conversations_run.id AND said.state IN ('queued', 'read'))
            """,
            [owner, settings.RUN_LEASE_SECONDS, run_id, most, most],
        )
        row = cursor.fetchone()
    return Claim(run_id, *row) if row else None


def renew(owner: str, epochs: dict[UUID, int]) -> Renewed:
    """Renews the leases of a worker's runs; what it would else miss without a wake-up comes with the answer."""
    with prepared_cursor() as cursor:
        cursor.execute(
            """
            WITH held AS (
                SELECT run.id FROM conversations_run run
                JOIN unnest(%s::uuid[], %s::int[]) AS mine(id, epoch) ON run.id = mine.id AND run.epoch = mine.epoch
                WHERE run.lease_owner = %s AND run.status = 'running'
                ORDER BY run.id FOR NO KEY UPDATE OF run  -- the order of the writer, or each would wait for the other
            )
            UPDATE conversations_run run SET lease_expires_at = now() + make_interval(secs => %s)
            FROM held WHERE run.id = held.id
            RETURNING run.id, run.cancel_requested_at IS NOT NULL, EXISTS (
                SELECT 1 FROM conversations_interrupt said WHERE said.run_id = run.id AND said.state = 'queued'
            )
            """,
            [list(epochs), list(epochs.values()), owner, settings.RUN_LEASE_SECONDS],
        )
        rows = cursor.fetchall()
    return Renewed(
        {run for run, _, _ in rows},
        {run for run, stopped, _ in rows if stopped},
        {run for run, _, spoken_to in rows if spoken_to},
    )


def due_runs(limit: int = 500) -> list[UUID]:
    """Runs that nobody works on though somebody should; marks them as enqueued now.

    Queued ones whose message was lost or whose patience is over, and running ones whose worker died.
    Several sweepers at once do no harm. A database that has just started knows nobody dead: workers that waited for it
    come first, with renewed leases and the results they hold.
    """
    stale = Now() - timedelta(seconds=settings.QUEUED_AGE_SECONDS)
    lost = Q(status=Run.Status.QUEUED, retry_at=None) & (Q(enqueued_at=None) | Q(enqueued_at__lt=stale))
    patient = Q(status=Run.Status.QUEUED, retry_at__lt=Now())
    orphaned = Q(status=Run.Status.RUNNING, lease_expires_at__lt=Now())
    wanted = lost | patient if database_is_young() else lost | patient | orphaned
    ids = list(
        Run.objects.filter(wanted)
        .exclude(status=Run.Status.QUEUED, user__in=_busy_users())
        .select_for_update(skip_locked=True, of=("self",))
        .order_by("created_at")
        .values_list("id", flat=True)[:limit]
    )
    Run.objects.filter(id__in=ids).update(enqueued_at=Now(), retry_at=None)
    return ids


def next_runs(user_id: int) -> list[UUID]:
    """The user's queued runs for which there is room now, oldest first."""
    most = settings.MAX_RUNNING_RUNS
    if not most:
        return []
    with prepared_cursor() as cursor:
        cursor.execute(
            """
            SELECT id, status FROM conversations_run
            WHERE user_id = %s AND status IN ('queued', 'running', 'waiting') AND retry_at IS NULL
            ORDER BY created_at LIMIT 500
            """,
            [user_id],
        )
        rows = cursor.fetchall()
    running = sum(status == "running" for _, status in rows)
    return [run for run, status in rows if status == "queued"][: max(0, most - running)]


def _busy_users() -> QuerySet[Any, Any]:
    """Those who have as many runs going on as they may."""
    if not settings.MAX_RUNNING_RUNS:
        return Run.objects.none().values("user")
    running = Run.objects.filter(status=Run.Status.RUNNING).values("user").annotate(count=Count("id"))
    return running.filter(count__gte=settings.MAX_RUNNING_RUNS).values("user")


def database_is_young() -> bool:
    """Whether it has just started: what waited for it comes first."""
    with prepared_cursor() as cursor:
        cursor.execute(
            "SELECT now() < pg_postmaster_start_time() + make_interval(secs => %s)", [settings.RUN_LEASE_SECONDS]
        )
        return bool(cursor.fetchone() == (True,))


def overdue_runs() -> list[UUID]:
    """Runs past their absolute deadline."""
    return list(Run.objects.active().filter(deadline__lt=timezone.now()).values_list("id", flat=True)[:500])
