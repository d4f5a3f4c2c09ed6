"""What people do with their webhooks. What is not theirs does not exist."""

import base64
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from agentapp.outbound import Refused, parse
from conversations.errors import ConversationError, NotFound
from conversations.models import Delivery, Webhook
from conversations.versions import check_version
from conversations.webhooks.outbox import enqueue

if TYPE_CHECKING:
    from accounts.models import User

MOST = 20  # of one person


class InvalidWebhook(ConversationError):
    code = "invalid_webhook"
    status = 422


class WebhookDisabled(ConversationError):
    code = "webhook_disabled"
    status = 409

    def __init__(self) -> None:
        super().__init__(_("This webhook is disabled. Enable it first."))


class TooManyWebhooks(ConversationError):
    code = "too_many_webhooks"
    status = 409

    def __init__(self) -> None:
        super().__init__(_("You have %(most)s webhooks already. Delete one first."), most=MOST)


def new_secret() -> SecretStr:
    return SecretStr("whsec_" + base64.b64encode(secrets.token_bytes(24)).decode())


def check_url(url: str) -> str:
    """The address, if events can be sent there at all; raises InvalidWebhook. Where it leads is checked each time."""
    try:
        parse(url)
    except Refused as error:
        raise InvalidWebhook(str(error)) from None
    if len(url) > 1_000:
        raise InvalidWebhook(_("The address is too long; 1,000 characters are possible."))
    return url


def check_events(events: Sequence[str]) -> list[str]:
    known: list[str] = Webhook.Event.values
    if not events or set(events) - set(known):
        raise InvalidWebhook(_("Choose at least one of these events: %(events)s."), events=", ".join(known))
    return [event for event in known if event in events]


def create(user: "User", url: str, events: Sequence[str]) -> tuple[Webhook, str]:
    """A new webhook and its secret, which is not shown again. Raises InvalidWebhook, TooManyWebhooks."""
    url, chosen = check_url(url), check_events(events)
    if Webhook.objects.visible_to(user).count() >= MOST:
        raise TooManyWebhooks
    secret = new_secret()
    return Webhook.objects.create(user=user, url=url, events=chosen, secret=secret), secret.get_secret_value()


@transaction.atomic(durable=True)
def change(user: "User", webhook_id: UUID, changes: dict[str, Any], *, if_match: str | None = None) -> Webhook:
    """url, events, enabled. With `if_match` only if it still has that `etag`. An administrator's leave for the inner
    network was given to the old address only. Raises InvalidWebhook, NotFound, ChangedMeanwhile."""
    webhook = find(user, webhook_id, lock=True)
    check_version(if_match, webhook.etag)
    if changes.get("url", webhook.url) != webhook.url:
        webhook.url, webhook.private_allowed = check_url(changes["url"]), False
    if "events" in changes:
        webhook.events = check_events(changes["events"])
    if "enabled" in changes:
        webhook.enabled, webhook.failures = changes["enabled"], 0
    webhook.save()
    return webhook


def delete(user: "User", webhook_id: UUID) -> None:
    find(user, webhook_id).delete()


def ping(user: "User", webhook_id: UUID) -> Delivery:
    """A delivery that says nothing, to try the receiver."""
    webhook = find(user, webhook_id)
    body = {"type": "ping", "timestamp": timezone.now().isoformat(), "data": {}}
    return send_again(Delivery(webhook=webhook, event="ping", payload=body))


def replay(user: "User", delivery_id: UUID) -> Delivery:
    """Sends a delivery again, under its own id. Raises NotFound."""
    delivery = Delivery.objects.visible_to(user).select_related("webhook").filter(id=delivery_id).first()
    if delivery is None:
        raise NotFound("delivery")
    return send_again(delivery)


@transaction.atomic(durable=True)
def send_again(delivery: Delivery) -> Delivery:
    """Raises WebhookDisabled."""
    if not delivery.webhook.enabled:
        raise WebhookDisabled
    delivery.state, delivery.tries, delivery.due_at = Delivery.State.PENDING, 0, timezone.now()
    delivery.save()
    transaction.on_commit(lambda: enqueue(delivery.id))
    return delivery


def find(user: "User", webhook_id: UUID, *, lock: bool = False) -> Webhook:
    rows = Webhook.objects.visible_to(user).filter(id=webhook_id)
    found = (rows.select_for_update() if lock else rows).first()
    if found is None:
        raise NotFound("webhook")
    return found
