"""What the API takes and gives."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from accounts.schemas import BodyId, Number
from tools_admin.documents.parsing import explain

ATTACHED = "Files from `POST /attachments`, in order. With files the text may be empty."


class StrictSchema(BaseModel):
    """Unknown fields are an error, not a silent wish. No `Schema` of Ninja's, which takes any object for fields."""

    model_config = ConfigDict(extra="forbid")


class RunIn(StrictSchema):
    input: str = Field(description="The question.")
    mode: str = Field("", max_length=20)
    agent: BodyId | None = Field(None, description="Who answers, from `GET /agents`.")
    client_id: str = Field("", max_length=64, description="The sender's own id: the same one twice makes one run.")
    attachments: list[UUID] = Field([], description=ATTACHED)
    wait: Annotated[float, Number] = Field(
        0, ge=0, le=60, description="Seconds to wait for the run's end; 0 answers at once."
    )


RunStatus = Literal["queued", "running", "waiting", "completed", "failed", "cancelled"]


class RunOut(Schema):
    id: UUID
    user: int = Field(alias="user_id")
    conversation: UUID = Field(alias="conversation_id")
    message: UUID = Field(alias="message_id")
    agent: int | None = Field(alias="agent_id")
    status: str
    reason: str
    error: str
    answer: str
    mode: str
    route: dict[str, Any] = Field(description="How it was worked on and why; empty where nothing had to be chosen.")
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
    pinned: StrictBool = False
    archived: StrictBool = False
    agent: BodyId = Field(1, description="Who answers from now on, from `GET /agents`.")
    branch: UUID | None = Field(None, description="A message: the newest branch through it becomes the visible one.")


class ConversationOut(Schema):
    id: UUID
    title: str
    agent: int | None = Field(alias="agent_id")
    branch: UUID | None = Field(alias="leaf_id", description="The end of the visible branch.")
    pinned: bool
    archived: bool
    created_at: datetime
    updated_at: datetime


class ConversationIn(StrictSchema):
    title: str = Field("", max_length=200, description="Without one the first message gives it.")
    agent: BodyId | None = Field(None, description="Who answers, from `GET /agents`.")


class MessageIn(StrictSchema):
    content: str
    mode: str = Field("", max_length=20)
    agent: BodyId | None = Field(None, description="Who answers, from `GET /agents`.")
    client_id: str = Field("", max_length=64, description="The sender's own id: the same one twice makes one message.")
    parent: UUID | None = Field(None, description="Begins a new branch below this message of the conversation.")
    attachments: list[UUID] = Field([], description=ATTACHED)


class EditIn(StrictSchema):
    content: str
    attachments: list[UUID] | None = Field(None, description="Files in place of the old message's, which it keeps.")
    client_id: str = Field("", max_length=64, description="The sender's own id: the same one twice makes one message.")


class SentOut(Schema):
    message: UUID
    run: UUID
    injected: bool = Field(description="A run was going on; it reads the message.")


class MessagePatch(StrictSchema):
    pinned: StrictBool = False
    feedback: Literal["", "good", "bad"] = ""


class AttachmentOut(Schema):
    id: UUID
    filename: str
    content_type: str = Field(description="By its content, whatever was said of it.")
    size: int = Field(description="Bytes of what is kept: pictures are drawn anew.")
    conversation: UUID | None = Field(alias="conversation_id", description="Where it was sent.")
    status: str = Field(description="`queued` until a worker has read it, then `ready` or `failed`.")
    problem: str = Field(description="Why its text cannot be read.")
    created_at: datetime

    @staticmethod
    def resolve_problem(row: Any) -> str:
        return explain(row.problem) if row.problem else ""


class MessageOut(Schema):
    id: UUID
    conversation: UUID = Field(alias="conversation_id")
    parent: UUID | None = Field(alias="parent_id")
    run: UUID | None = Field(alias="run_id")
    role: str
    content: str
    attachments: list[AttachmentOut] = Field(alias="files")
    pinned: bool
    feedback: str
    partial: bool
    injected: bool
    recalled: bool
    created_at: datetime


class ReturnedOut(Schema):
    items: list[MessageOut]


ApprovalState = Literal["pending", "approved", "rejected", "expired", "consumed", "superseded"]


class ApprovalOut(Schema):
    id: UUID
    run: UUID = Field(alias="run_id")
    key: str
    tool_name: str
    arguments: dict[str, Any]
    edited: dict[str, Any] | None
    state: str
    comment: str
    expires_at: datetime
    decided_at: datetime | None
    created_at: datetime


class DecisionIn(StrictSchema):
    decision: Literal["approve", "allow", "reject", "withdraw"] = Field(
        description="`allow` approves this call and further ones of the tool in the conversation."
    )
    args: dict[str, Any] | None = Field(
        None, description="Changed arguments; they are checked against the tool's schema."
    )
    comment: str = Field("", max_length=1_000)


class ResolutionIn(StrictSchema):
    call: str = Field(max_length=200, description="The call's position, as the run's `request` names it.")
    outcome: Literal["done", "not_done", "retry"]
    result: str = Field("", max_length=50_000)


class AnswerIn(StrictSchema):
    request: UUID = Field(description="The question, as the run's `request` and its events name it.")
    action: Literal["accept", "decline", "withdraw"] = "accept"
    value: dict[str, Any] = Field({}, description="The fields that the question asks for.")


class QuestionOut(Schema):
    id: UUID
    run: UUID = Field(alias="run_id")
    source: str
    text: str
    fields: dict[str, Any]
    url: str
    state: str
    answer: dict[str, Any]
    expires_at: datetime
    answered_at: datetime | None
    created_at: datetime


class UsageOut(Schema):
    name: str = Field(description="The day, user, model or tool.")
    runs: int
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost: int = Field(description="Micro-units of the currency.")
    estimated: bool = Field(description="Some of it is an estimate, as an endpoint did not say what it used.")


class ModelStatus(Schema):
    state: str
    message: str
    done_bytes: int
    total_bytes: int


class StatusOut(Schema):
    model: ModelStatus
    worker: bool
