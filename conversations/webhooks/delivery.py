"""Sending what is in the outbox, signed as Standard Webhooks has it; again and more slowly where it fails."""

import asyncio
import base64
import hashlib
import hmac
import time
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import httpx2
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from agentapp.encryption import UndecryptableSecret
from agentapp.outbound import OutboundError, OutboundTransport, Policy, parse
from conversations import live
from conversations.cleaning import clean, to_json
from conversations.models import Delivery, Webhook

TIMEOUT_SECONDS = 10.0
# Until the next try, after each failure: five tries in 20 hours.
WAITS = (timedelta(minutes=1), timedelta(minutes=15), timedelta(hours=2), timedelta(hours=18))
LEASE = timedelta(minutes=1)  # a worker that died with a delivery leaves it to another
MOST_FAILURES = 20  # tries in a row, of all deliveries; then the webhook is disabled
KEPT = timedelta(days=30)
ANSWER_CHARS = 500


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one try: the status of the answer, None when there was none, and how it began or what went wrong."""

    status: int | None
    answer: str
    elapsed_ms: int

    @property
    def good(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def signature(secret: str, delivery: str, timestamp: int, body: bytes) -> str:
    """`v1,` and the base64 of HMAC-SHA256 over id, time and body."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{delivery}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def deliver(delivery_id: UUID) -> None:
    """One try, if it is due and nobody else is at it."""
    with transaction.atomic():
        delivery = (
            Delivery.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("webhook")
            .filter(id=delivery_id, state=Delivery.State.PENDING, due_at__lte=timezone.now(), webhook__enabled=True)
            .exclude(webhook__user__is_active=False)
            .first()
        )
        if delivery is None:
            return
        delivery.tries += 1
        delivery.due_at = timezone.now() + LEASE
        delivery.save(update_fields=["tries", "due_at"])
    outcome = asyncio.run(_send(delivery))
    _record(delivery, outcome)


async def _send(delivery: Delivery) -> Outcome:
    webhook, began = delivery.webhook, time.monotonic()

    def outcome(status: int | None, answer: str) -> Outcome:
        return Outcome(status, clean(answer)[:ANSWER_CHARS], round((time.monotonic() - began) * 1000))

    body, timestamp = to_json(delivery.payload), int(time.time())
    try:
        secret = webhook.secret.get_secret_value()
    except UndecryptableSecret as error:
        return outcome(None, str(error))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "agentapp-webhooks",
        "webhook-id": str(delivery.id),
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(secret, str(delivery.id), timestamp, body),
    }
    # Hosts that were opened for tools are not: anybody may name an address here. Only the beginning is read.
    policy = Policy(max_bytes=None)
    try:
        if webhook.private_allowed:
            policy = policy.allowing(webhook.url)
        parse(webhook.url)
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            httpx2.AsyncClient(
                transport=OutboundTransport(policy), timeout=TIMEOUT_SECONDS, trust_env=False, follow_redirects=False
            ) as client,
            client.stream("POST", webhook.url, content=body, headers=headers) as response,
        ):
            return outcome(response.status_code, await _beginning(response))
    except TimeoutError:
        return outcome(None, f"No answer within {TIMEOUT_SECONDS:g} s.")
    except OutboundError as error:
        return outcome(None, str(error))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return outcome(None, f"No connection: {type(error).__name__}")


async def _beginning(response: httpx2.Response) -> str:
    """An answer may be as long as it likes, and as slow: its status counts."""
    read = b""
    try:
        async with asyncio.timeout(1):
            async for piece in response.aiter_bytes():
                read += piece[: ANSWER_CHARS * 4]
                if len(read) >= ANSWER_CHARS * 4:
                    break
    except (TimeoutError, httpx2.HTTPError):
        pass
    return read.decode("utf-8", "replace")


@transaction.atomic(durable=True)
def _record(delivery: Delivery, outcome: Outcome) -> None:
    delivery.status, delivery.answer, delivery.elapsed_ms = outcome.status, outcome.answer, outcome.elapsed_ms
    hooks = Webhook.objects.filter(id=delivery.webhook_id)
    if outcome.good:
        delivery.state, delivery.due_at = Delivery.State.DELIVERED, None
        hooks.update(failures=0)
        Delivery.objects.filter(webhook=delivery.webhook_id, created_at__lt=timezone.now() - KEPT).delete()
    else:
        waits = WAITS[delivery.tries - 1] if delivery.tries <= len(WAITS) else None
        delivery.state = Delivery.State.PENDING if waits else Delivery.State.FAILED
        delivery.due_at = timezone.now() + waits if waits else None
        hooks.update(failures=F("failures") + 1)
        # 410 is how a receiver says that it wants no more.
        failing = hooks.filter(enabled=True) if outcome.status == 410 else hooks.filter(failures__gte=MOST_FAILURES)
        if failing.filter(enabled=True).update(enabled=False):
            transaction.on_commit(lambda: _tell_disabled(delivery.webhook))
    known = Delivery.objects.filter(pk=delivery.pk)  # the webhook may have been deleted meanwhile
    known.update(**{name: getattr(delivery, name) for name in ("state", "due_at", "status", "answer", "elapsed_ms")})


def _tell_disabled(webhook: Webhook) -> None:
    if webhook.user_id is not None:
        text = _("The webhook %(url)s was disabled: it failed again and again.") % {"url": webhook.url}
        live.tell_user(webhook.user_id, ("notice", {"code": "webhook_disabled", "message": text}))
