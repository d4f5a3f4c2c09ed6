"""REST: one's own webhooks."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from accounts.auth import caller
from accounts.idempotency import idempotent
from accounts.paging import Limit, Page, TimeCursor, page_by_time
from accounts.schemas import PageOut
from conversations.models import Delivery, Webhook
from conversations.schemas import WITH_ETAG, IfMatch
from conversations.webhooks import service
from conversations.webhooks.schemas import (
    DeliveryOut,
    NewWebhookOut,
    WebhookIn,
    WebhookOut,
    WebhookPatch,
)

router = Router(tags=["Webhooks"])


@router.get("/webhooks", response=PageOut[WebhookOut], summary="Your webhooks")
def list_webhooks(request: HttpRequest, cursor: TimeCursor = None, limit: Limit = 50) -> Page[Webhook]:
    """The oldest first."""
    return page_by_time(Webhook.objects.visible_to(caller(request)), cursor, limit)


@router.post("/webhooks", response={201: NewWebhookOut}, summary="Be told of events")
@idempotent
def create_webhook(request: HttpRequest, body: WebhookIn) -> Status[dict[str, Any]]:
    """The answer holds the secret, which is not shown again."""
    webhook, secret = service.create(caller(request), body.url, body.events)
    return Status(201, {**WebhookOut.model_validate(webhook).model_dump(), "secret": secret})


@router.get("/webhooks/{uuid:webhook_id}", response=WebhookOut, summary="A webhook", openapi_extra=WITH_ETAG)
def get_webhook(request: HttpRequest, response: HttpResponse, webhook_id: UUID) -> Webhook:
    """Never with its secret."""
    found = service.find(caller(request), webhook_id)
    response["ETag"] = found.etag
    return found


@router.patch("/webhooks/{uuid:webhook_id}", response=WebhookOut, summary="Change a webhook", openapi_extra=WITH_ETAG)
def change_webhook(
    request: HttpRequest, response: HttpResponse, webhook_id: UUID, body: WebhookPatch, if_match: IfMatch = None
) -> Webhook:
    """Its address, its events; `enabled` also forgets its failures."""
    changes = body.model_dump(exclude_unset=True, exclude_none=True)
    found = service.change(caller(request), webhook_id, changes, if_match=if_match)
    response["ETag"] = found.etag
    return found


@router.delete("/webhooks/{uuid:webhook_id}", response={204: None}, summary="Delete a webhook and its log")
def delete_webhook(request: HttpRequest, webhook_id: UUID) -> Status[None]:
    """What is on its way to it is not sent any more."""
    service.delete(caller(request), webhook_id)
    return Status(204, None)


@router.post("/webhooks/{uuid:webhook_id}/ping", response={202: DeliveryOut}, summary="Try a webhook")
@idempotent
def ping(request: HttpRequest, webhook_id: UUID) -> Status[Delivery]:
    """Sends an event of type `ping`."""
    return Status(202, service.ping(caller(request), webhook_id))


@router.get(
    "/webhooks/{uuid:webhook_id}/deliveries", response=PageOut[DeliveryOut], summary="What was sent, the newest first"
)
def list_deliveries(
    request: HttpRequest, webhook_id: UUID, cursor: TimeCursor = None, limit: Limit = 50
) -> Page[Delivery]:
    """Of the last 30 days."""
    rows = Delivery.objects.filter(webhook=service.find(caller(request), webhook_id))
    return page_by_time(rows, cursor, limit, newest_first=True)


@router.post("/deliveries/{uuid:delivery_id}/replay", response={202: DeliveryOut}, summary="Send an event again")
@idempotent
def replay(request: HttpRequest, delivery_id: UUID) -> Status[Delivery]:
    """Under its own id, with a new time and signature."""
    return Status(202, service.replay(caller(request), delivery_id))
