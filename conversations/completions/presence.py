"""Programs wait for their runs as long as their web process says so: a process that died stops them as a hang-up would.

Every lease the process renews `Asked.awaited_until` of all its runs with one statement, and none for a run that is
quicker; the sweeper stops those whose time has passed. It is three leases, so that a short outage stops nothing.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError
from django.db.models.functions import Now
from django.utils import timezone

from agentapp.database import in_thread
from conversations import claims, services
from conversations.errors import NotFound
from conversations.models import Asked, Run

log = logging.getLogger(__name__)


def awaited_until() -> datetime:
    """Of a run that is begun now."""
    return timezone.now() + _term()


class Presence:
    """Of one web process (its event loop)."""

    def __init__(self) -> None:
        self._runs: set[UUID] = set()
        self._saying: asyncio.Task[None] | None = None

    @contextmanager
    def of(self, run_id: UUID) -> Iterator[None]:
        """While this is open somebody waits for the run."""
        self._runs.add(run_id)
        if self._saying is None or self._saying.done():
            self._saying = asyncio.create_task(self._say())
        try:
            yield
        finally:
            self._runs.discard(run_id)

    async def _say(self) -> None:
        pause = float(settings.RUN_LEASE_SECONDS)
        while self._runs:
            await asyncio.sleep(pause)
            try:
                await in_thread(_renew, list(self._runs))
                pause = settings.RUN_LEASE_SECONDS
            except DatabaseError as error:
                log.warning("The database does not answer: %s", str(error).strip()[:200])
                pause = 1.0


presence = Presence()


def stop_unawaited() -> None:
    """Stops runs whose web process has died (for the sweeper). Processes that waited for the database come first."""
    if claims.database_is_young():
        return
    left = Run.objects.active().filter(asked__awaited_until__lt=Now()).select_related("user")[:500]
    for run in left:
        try:
            services.cancel_run(run.user, run.id)
        except NotFound:  # of a disabled person: ended by its next call
            continue
        log.info("Run %s is stopped: nobody waits for its reply any more.", run.id)


def _term() -> timedelta:
    return timedelta(seconds=3 * settings.RUN_LEASE_SECONDS)


def _renew(runs: list[UUID]) -> None:
    Asked.objects.filter(run__in=runs).update(awaited_until=Now() + _term())
