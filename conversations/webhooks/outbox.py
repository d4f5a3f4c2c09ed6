"""What is to be told, written in the transaction of what happened."""

import uuid
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agentapp.celery import hint
from agentapp.database import prepared_cursor
from conversations.cleaning import to_json
from conversations.models import Delivery, Run

KEPT_DISABLED = timedelta(days=1)
SWEPT = 200

# One statement, and nearly always no row: it is part of the end of each run.
_TELL = """
INSERT INTO conversations_delivery (id, webhook_id, event, payload, state, tries, due_at, answer, created_at)
SELECT gen_random_uuid(), id, %(event)s::text, %(payload)s::jsonb, 'pending', 0, now(), '', now()
FROM conversations_webhook
WHERE enabled AND events ? %(event)s::text AND (user_id IS NULL OR user_id = (
    SELECT id FROM accounts_user WHERE id = %(user)s AND is_active))
RETURNING id
"""


def tell(event: str, user_id: int, data: dict[str, Any]) -> None:
    """Puts an event of this person into the outbox of each webhook that is told of it, and sends it after commit."""
    body = {"type": event, "timestamp": timezone.now().isoformat(), "data": data}
    with prepared_cursor() as cursor:
        cursor.execute(_TELL, {"event": event, "user": user_id, "payload": to_json(body).decode()})
        ids = [row[0] for row in cursor.fetchall()]
    if ids:
        transaction.on_commit(lambda: _enqueue_all(ids))


def tell_end(run: Run) -> None:
    tell("run.finished", run.user_id, {**_of(run), "usage": run.usage, "cost": run.cost, "iterations": run.iterations})


def tell_waiting(run: Run) -> None:
    pending = run.approvals.filter(state="pending").values_list("id", "tool_name", "expires_at")
    requests = [{"id": str(number), "tool": tool, "expires_at": end.isoformat()} for number, tool, end in pending]
    tell("approval.needed", run.user_id, {**_of(run), "approvals": requests})


def due_deliveries() -> list[uuid.UUID]:
    """What a broker or a worker lost, and what is to be tried again. Gives up what waits for a disabled webhook."""
    pending = Delivery.objects.filter(state=Delivery.State.PENDING, due_at__lte=timezone.now()).order_by("due_at")
    unwanted = Q(webhook__enabled=False) | Q(webhook__user__is_active=False)
    old = pending.filter(unwanted, created_at__lt=timezone.now() - KEPT_DISABLED)
    old.order_by().update(state=Delivery.State.FAILED, due_at=None, answer="The webhook is disabled.")
    return list(pending.exclude(unwanted).values_list("id", flat=True)[:SWEPT])


def _of(run: Run) -> dict[str, Any]:
    """What happened, without content: whoever may read that fetches it."""
    return {
        "run": str(run.id),
        "conversation": str(run.conversation_id),
        "user": run.user_id,
        "status": str(run.status),
        "reason": run.reason,
    }


def _enqueue_all(deliveries: list[uuid.UUID]) -> None:
    for delivery in deliveries:
        enqueue(delivery)


def enqueue(delivery: uuid.UUID) -> None:
    """A hint. Without the broker the sweeper finds it."""
    hint("conversations.tasks.deliver_webhook", str(delivery))
