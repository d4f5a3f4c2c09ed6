"""Webhooks as the REST API takes and gives them."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from ninja import Schema
from pydantic import Field, StrictBool

from conversations.schemas import StrictSchema

Event = Literal["run.finished", "approval.needed", "budget.near"]


class WebhookIn(StrictSchema):
    url: str = Field(max_length=1_000, description="Where events are sent, as POST with JSON.")
    events: list[Event] = Field(min_length=1, max_length=3)


class WebhookPatch(StrictSchema):
    url: str | None = Field(None, max_length=1_000)
    events: list[Event] | None = Field(None, min_length=1, max_length=3)
    enabled: StrictBool | None = None


class WebhookOut(Schema):
    id: UUID
    url: str
    events: list[str]
    enabled: bool
    failures: int = Field(description="Failed tries in a row; after 20 it is disabled.")
    created_at: datetime


class NewWebhookOut(WebhookOut):
    secret: str = Field(description="Shown this once: what signatures are made with.")


class DeliveryOut(Schema):
    id: UUID = Field(description="Also the header `webhook-id`, the same in every try.")
    event: str
    payload: dict[str, object]
    state: Literal["pending", "delivered", "failed"]
    tries: int
    due_at: datetime | None = Field(description="When it is tried next.")
    status: int | None = Field(description="Of the last answer; null when there was none.")
    elapsed_ms: int | None
    answer: str = Field(description="How the last answer began, or what went wrong.")
    created_at: datetime
