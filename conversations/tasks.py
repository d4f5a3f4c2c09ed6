"""Celery's part: hints that carry an id. Losing or doubling one changes nothing."""

import logging
import os
from typing import Any
from uuid import UUID

from celery.signals import worker_ready, worker_shutdown, worker_shutting_down
from django.db import DatabaseError, transaction

from accounts.services import forget_idempotent_answers
from agentapp.celery import app
from conversations import claims
from conversations.approvals import expire_approvals
from conversations.attachments import sweep_attachments
from conversations.comparison import services as comparisons
from conversations.completions.presence import stop_unawaited
from conversations.lifecycle import end_run, enqueue, wake
from conversations.models import Run
from conversations.questions import expire_questions
from conversations.webhooks import outbox
from tools_admin.services import sync_environment
from tools_admin.tasks import resume_documents

log = logging.getLogger(__name__)


@app.task
def execute_run(run_id: str) -> None:
    from conversations.worker import process_worker

    process_worker().run(UUID(run_id))


@app.task
def run_comparison(comparison_id: str) -> None:
    from conversations.worker import process_worker

    process_worker().compare(UUID(comparison_id))


@app.task
def deliver_webhook(delivery_id: str) -> None:
    from conversations.webhooks.delivery import deliver

    deliver(UUID(delivery_id))


@app.task
def read_attachment(attachment_id: str) -> None:
    """Ahead of time. A run that is told of the file reads it if this did not."""
    from conversations.worker import process_worker

    process_worker().read(UUID(attachment_id))


@app.task
def sweep() -> None:
    """Brings back runs that lost their message or their worker, and ends those past their deadline."""
    with transaction.atomic():
        due = claims.due_runs()
    for run_id in due:
        enqueue(run_id)
    for comparison_id in comparisons.due():
        comparisons.enqueue(comparison_id)
    expire_approvals()
    expire_questions()
    stop_unawaited()
    forget_idempotent_answers()
    resume_documents()
    for delivery in outbox.due_deliveries():
        outbox.enqueue(delivery)
    sweep_attachments()
    for run_id in claims.overdue_runs():
        with transaction.atomic():
            run = Run.objects.active().select_for_update().filter(id=run_id).first()
            if run:
                end_run(run, Run.Status.FAILED, "deadline", error="The run took longer than its deadline allows.")
        wake(run_id)


@worker_ready.connect
def _start(**_: object) -> None:
    """The environment may have changed since the last migration; then the loop begins to give signs of life."""
    from conversations.worker import process_worker

    try:
        sync_environment()
    except DatabaseError as error:
        log.warning("The database does not answer (%s); models stay as they are.", str(error).strip()[:200])
    process_worker()


@worker_shutting_down.connect
def _drain(how: str, **_: object) -> None:
    from conversations.worker import process_worker

    if how == "Warm":
        process_worker().drain()


@worker_shutdown.connect
def _go(sender: Any, **_: object) -> None:
    """A tool that hangs in a thread cannot be stopped, and must not keep the process."""
    from conversations.worker import process_worker

    process_worker().wait_until_drained()
    logging.shutdown()
    os._exit(sender.exitcode or 0)
