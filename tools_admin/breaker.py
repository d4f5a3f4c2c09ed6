"""The circuit breaker of a connector, shared by all workers: a system that keeps failing is left alone for a while.

Its state is in the connector's row, which is written only when something fails or recovers.
"""

from datetime import timedelta

from django.db.models import F
from django.utils import timezone

from tools_admin.connector_models import Connector

FAILURES = 5  # in a row, until calls pause
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 15, 600


def failed(connector_id: int, error: str) -> None:
    """One more failure. From the fifth in a row calls pause, each time twice as long."""
    rows = Connector.objects.filter(pk=connector_id)
    rows.update(failures=F("failures") + 1, last_error=error[:500])
    failures = rows.values_list("failures", flat=True).first() or 0
    if failures >= FAILURES:
        seconds = min(PAUSE_SECONDS * 2 ** min(failures - FAILURES, 10), LONGEST_PAUSE_SECONDS)
        rows.update(paused_until=timezone.now() + timedelta(seconds=seconds))


def recovered(connector_id: int) -> None:
    Connector.objects.filter(pk=connector_id).update(failures=0, paused_until=None, last_error="")
