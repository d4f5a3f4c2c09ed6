"""REST: one's own webhooks."""

from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import HttpRequest
from ninja import Router, Status

from accounts.auth import caller
from conversations.models import Delivery, Webhook
from conversations.webhooks import service
from conversations.webhooks.schemas import (
    DeliveryOut,
    DeliveryPage,
    NewWebhookOut,
    WebhookIn,
    WebhookOut,
    WebhookPatch,
)

router = Router(tags=["webhooks"])

LISTED = 50


@router.get("/webhooks", response=list[WebhookOut], summary="Your webhooks")
def list_webhooks(request: HttpRequest) -> list[Webhook]:
    return list(Webhook.objects.visible_to(caller(request)))


@router.post("/webhooks", response={201: NewWebhookOut}, summary="Be told of events")
def create_webhook(request: HttpRequest, body: WebhookIn) -> Status[dict[str, Any]]:
    """The answer holds the secret, once."""
    webhook, secret = service.create(caller(request), body.url, body.events)
    return Status(201, {**WebhookOut.from_orm(webhook).dict(), "secret": secret})


@router.patch("/webhooks/{uuid:webhook_id}", response=WebhookOut, summary="Change a webhook")
def change_webhook(request: HttpRequest, webhook_id: UUID, body: WebhookPatch) -> Webhook:
    return service.change(caller(request), webhook_id, body.dict(exclude_unset=True, exclude_none=True))


@router.delete("/webhooks/{uuid:webhook_id}", response={204: None}, summary="Delete a webhook and its log")
def delete_webhook(request: HttpRequest, webhook_id: UUID) -> Status[None]:
    service.delete(caller(request), webhook_id)
    return Status(204, None)


@router.post("/webhooks/{uuid:webhook_id}/ping", response={202: DeliveryOut}, summary="Try a webhook")
def ping(request: HttpRequest, webhook_id: UUID) -> Status[Delivery]:
    """Sends an event of type `ping`."""
    return Status(202, service.ping(caller(request), webhook_id))


@router.get("/webhooks/{uuid:webhook_id}/deliveries", response=DeliveryPage, summary="What was sent, the newest first")
def list_deliveries(request: HttpRequest, webhook_id: UUID, cursor: UUID | None = None) -> dict[str, Any]:
    """Of the last 30 days, 50 a page."""
    found = service.find(caller(request), webhook_id).deliveries.order_by("-created_at", "-id")
    if cursor and (last := found.filter(id=cursor).first()):
        found = found.filter(Q(created_at__lt=last.created_at) | Q(created_at=last.created_at, id__lt=last.id))
    rows = list(found[: LISTED + 1])
    return {"items": rows[:LISTED], "next": str(rows[LISTED - 1].id) if len(rows) > LISTED else None}


@router.post("/deliveries/{uuid:delivery_id}/replay", response={202: DeliveryOut}, summary="Send an event again")
def replay(request: HttpRequest, delivery_id: UUID) -> Status[Delivery]:
    """Under its own id, with a new time and signature."""
    return Status(202, service.replay(caller(request), delivery_id))
