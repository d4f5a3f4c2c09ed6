"""What the API takes and gives."""

from datetime import datetime
from typing import Any
from uuid import UUID

from ninja import Schema
from pydantic import ConfigDict, Field


class StrictSchema(Schema):
    """Unknown fields are an error, not a silent wish."""

    model_config = ConfigDict(extra="forbid")


class RunIn(StrictSchema):
    input: str = Field(description="The question.")
    mode: str = Field("", max_length=20)
    wait: float = Field(0, ge=0, le=60, description="Seconds to wait for the run's end; 0 answers at once.")


class RunOut(Schema):
    id: UUID
    conversation: UUID = Field(alias="conversation_id")
    status: str
    reason: str
    error: str
    answer: str
    mode: str
    model: dict[str, Any]
    iterations: int
    usage: dict[str, Any]
    cost: int = Field(description="Micro-units of the currency.")
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class CallOut(Schema):
    key: str
    kind: str
    state: str
    request: dict[str, Any]
    result: dict[str, Any] | None
    error: str
    usage: dict[str, Any]
    cost: int
    started_at: datetime
    ended_at: datetime | None


class EventOut(Schema):
    run: UUID = Field(alias="run_id")
    seq: int
    channel: str
    data: dict[str, Any]
    at: datetime


class ConversationPatch(StrictSchema):
    title: str = Field("", max_length=200)
    pinned: bool = False
    archived: bool = False


class ConversationOut(Schema):
    id: UUID
    title: str
    pinned: bool
    archived: bool
    created_at: datetime
    updated_at: datetime


class MessagePatch(StrictSchema):
    pinned: bool


class MessageOut(Schema):
    id: UUID
    conversation: UUID = Field(alias="conversation_id")
    role: str
    content: str
    pinned: bool
    partial: bool
    injected: bool
    created_at: datetime


class ModelStatus(Schema):
    state: str
    message: str
    done_bytes: int
    total_bytes: int


class StatusOut(Schema):
    model: ModelStatus
    worker: bool
