"""Webhooks as the REST API takes and gives them."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from ninja import Schema
from pydantic import Field, StrictBool

from accounts.examples import ASKED_AT, CONVERSATION, DELIVERY, ENDED_AT, RUN, USED, USER, WEBHOOK, example, shown
from conversations.schemas import StrictSchema

Event = Literal["run.finished", "approval.needed", "budget.near"]


URL = "Where events are sent, as POST with JSON."
EVENTS = "What it is told of."


class WebhookIn(StrictSchema):
    model_config = example(url="https://example.org/hook", events=["run.finished"])

    url: str = Field(max_length=1_000, description=URL)
    events: list[Event] = Field(min_length=1, max_length=3, description=EVENTS)


class WebhookPatch(StrictSchema):
    model_config = example(enabled=True)

    url: str | None = Field(None, max_length=1_000, description=URL)
    events: list[Event] | None = Field(None, min_length=1, max_length=3, description=EVENTS)
    enabled: StrictBool | None = Field(None, description="Disabled, it is told of nothing.")


class WebhookOut(Schema):
    model_config = example(
        id=WEBHOOK,
        url="https://example.org/hook",
        events=["run.finished"],
        enabled=True,
        failures=0,
        created_at=ASKED_AT,
    )

    id: UUID = Field(description="Names the webhook in all other calls.")
    url: str = Field(description=URL)
    events: list[str] = Field(description=EVENTS)
    enabled: bool = Field(description="Disabled, it is told of nothing.")
    failures: int = Field(description="Failed tries in a row; after 20 it is disabled.")
    created_at: datetime = Field(description="When it was made.")


class NewWebhookOut(WebhookOut):
    model_config = example(**shown(WebhookOut)[0], secret="whsec_YW4gZXhhbXBsZSBhbmQgbm8gc2VjcmV0")  # noqa: S106 - it says so itself

    secret: str = Field(description="Shown this once: what signatures are made with.")


class DeliveryOut(Schema):
    model_config = example(
        id=DELIVERY,
        event="run.finished",
        payload={
            "type": "run.finished",
            "timestamp": ENDED_AT,
            "data": {
                "run": RUN,
                "conversation": CONVERSATION,
                "user": USER,
                "status": "completed",
                "reason": "final_answer",
                "usage": USED,
                "cost": 1_830,
                "iterations": 2,
            },
        },
        state="delivered",
        tries=1,
        due_at=None,
        status=204,
        elapsed_ms=85,
        answer="",
        created_at=ENDED_AT,
    )

    id: UUID = Field(description="Also the header `webhook-id`, the same in every try.")
    event: str = Field(description="What happened; `ping` when somebody tries it.")
    payload: dict[str, object] = Field(description="The body as it is sent.")
    state: Literal["pending", "delivered", "failed"] = Field(description="What became of it.")
    tries: int = Field(description="How often it has been sent.")
    due_at: datetime | None = Field(description="When it is tried next.")
    status: int | None = Field(description="Of the last answer; null when there was none.")
    elapsed_ms: int | None = Field(description="How long the last try took, in milliseconds.")
    answer: str = Field(description="How the last answer began, or what went wrong.")
    created_at: datetime = Field(description="When it happened.")
