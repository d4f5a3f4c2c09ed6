"""Is everything there that a run needs? `/healthz` asks the process, `/readyz` all its parts."""

import time

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from conversations.live import WORKERS_KEY, sync_client


def worker_seen() -> bool:
    """A worker gave a sign of life within three heartbeats."""
    since = time.time() - 3 * settings.RUN_HEARTBEAT_SECONDS
    try:
        return bool(sync_client().zcount(WORKERS_KEY, since, "+inf"))
    except redis.RedisError:
        return False


@require_safe
def healthz(_request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(_request: HttpRequest) -> JsonResponse:
    """200, or 503 with the parts that are missing, each in one sentence."""
    problems = {name: text for name, check in _CHECKS.items() if (text := check())}
    status = {"status": "unavailable" if problems else "ok", "problems": problems}
    response = JsonResponse(status, status=503 if problems else 200)
    response._has_been_logged = True  # type: ignore[attr-defined]  # whoever asks decides whether it is an error
    return response


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return "The database does not answer."
    return "Migrations have not been applied: run `manage.py migrate`." if pending else ""


def _redis() -> str:
    try:
        sync_client().ping()
    except redis.RedisError:
        return "The broker does not answer."
    return ""


def _worker() -> str:
    return "" if worker_seen() else "No worker has given a sign of life."


_CHECKS = {"database": _database, "redis": _redis, "worker": _worker}
