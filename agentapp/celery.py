"""The Celery application: threads pool, early acknowledgement, no results, beat as a thread of the worker.

Early acknowledgement on purpose: a message is only a hint (the sweeper recovers), and late acknowledgement kills
workers when the broker goes away.
"""

import logging
import os
from typing import Any

import kombu.exceptions
import redis
from celery import Celery, bootsteps
from celery.beat import EmbeddedService
from django.conf import settings

log = logging.getLogger(__name__)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentapp.settings")
# Django's checks load all pages, 15 MB that no worker needs; `migrate` has made them before.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("agentapp")
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_connection_retry_on_startup=True,
    # A sender waits for a missing broker for a moment only: its run is queued already.
    broker_transport_options={
        "socket_connect_timeout": 1,
        "socket_timeout": 5,
        "max_retries": 1,
        "interval_start": 0.1,
        # A second record of each message until it is acknowledged is half the work of receiving one, and a hint may be
        # lost: the sweeper brings its run back.
        "ack_emulation": False,
    },
    task_acks_late=False,
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    timezone="UTC",
    beat_schedule={
        "sweep": {
            "task": "conversations.tasks.sweep",
            "schedule": settings.SWEEP_SECONDS,
            "options": {"expires": settings.SWEEP_SECONDS},
        },
    },
)
app.autodiscover_tasks(["conversations", "tools_admin"])


def hint(task: str, *args: str | int) -> bool:
    """Tells the workers of something on record. False: the broker does not answer; then it is left to the sweeper."""
    try:
        app.send_task(task, args=args, retry=False)
    except (kombu.exceptions.OperationalError, redis.RedisError, OSError) as error:
        log.warning("The broker does not answer (%s). No worker is told of %s%s", error, task, args)
        return False
    return True


class BeatThread(bootsteps.StartStopStep):
    """Beat inside the worker: `-B` would fork a whole process beside the threads pool."""

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        self._beat: Any = None

    def start(self, parent: Any) -> None:
        self._beat = EmbeddedService(app, thread=True, scheduler_cls="celery.beat:Scheduler")
        self._beat.daemon = True
        self._beat.start()

    def stop(self, parent: Any) -> None:
        if self._beat is not None:
            self._beat.stop()


if settings.EMBEDDED_BEAT:
    app.steps["worker"].add(BeatThread)
