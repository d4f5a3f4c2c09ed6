"""What the API takes and gives of conversations: messages and their files. Of runs: `schemas_runs`."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Header, Schema
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from accounts.examples import (
    AGENT,
    ANSWER,
    ASKED_AT,
    ATTACHMENT,
    CONVERSATION,
    ENDED_AT,
    QUESTION,
    RUN,
    example,
    shown,
)
from accounts.schemas import BodyId, RowOut
from tools_admin.documents.parsing import explain

ATTACHED = "Files from `POST /attachments`, in order. With files the text may be empty."
AGENT_WORDS = "Who answers, from `GET /agents`; without it the conversation's agent, or yours."
MODE_WORDS = "How the agent works: auto, direct, react, rewoo, plan_execute or dag. Empty: as its agent does."
CLIENT_ID = "The sender's own id: the same one twice makes one message."
# `ETag` and `If-Match`, as calls give and take them (`versions.py`).
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="The `ETag` that was read: 412 `changed_meanwhile` if somebody else was faster. Without it, or "
        "with `*`, nobody is asked.",
        examples=["*"],
    ),
]
_ETAG = {"description": "The version, for `If-Match`.", "schema": {"type": "string"}}
WITH_ETAG = {"responses": {200: {"headers": {"ETag": _ETAG}}}}


class StrictSchema(BaseModel):
    """Unknown fields are an error, not a silent wish. No `Schema` of Ninja's, which takes any object for fields."""

    model_config = ConfigDict(extra="forbid")


class ConversationIn(StrictSchema):
    model_config = example(title="Figures", agent=AGENT)

    title: str = Field("", max_length=200, description="Without one the first message gives it.")
    agent: BodyId | None = Field(None, description=AGENT_WORDS)


class ConversationPatch(StrictSchema):
    model_config = example(title="Squares", pinned=True)

    title: str = Field("", max_length=200, description="What it is called from now on.")
    pinned: StrictBool = Field(False, description="Whether it stands at the top of the list.")
    archived: StrictBool = Field(False, description="Whether it is out of the list, and only found with `archived`.")
    agent: BodyId = Field(1, description="Who answers from now on, from `GET /agents`.")
    branch: UUID | None = Field(None, description="A message: the newest branch through it becomes the visible one.")


class ConversationOut(RowOut):
    model_config = example(
        id=CONVERSATION,
        title="What is 12 * 12?",
        agent=AGENT,
        branch=ANSWER,
        pinned=False,
        archived=False,
        created_at=ASKED_AT,
        updated_at=ENDED_AT,
    )

    id: UUID = Field(description="Names the conversation in all other calls.")
    title: str = Field(description="Perhaps empty before the first message.")
    agent: int | None = Field(alias="agent_id", description="Who answers; null once that agent is deleted.")
    branch: UUID | None = Field(alias="leaf_id", description="The end of the visible branch.")
    pinned: bool = Field(description="It stands at the top of the list.")
    archived: bool = Field(description="It is out of the list.")
    created_at: datetime = Field(description="When it was begun.")
    updated_at: datetime = Field(description="When something was last said or changed.")


class MessageIn(StrictSchema):
    model_config = example(content="And 13 * 13?")

    content: str = Field(description="What is said, in Markdown.")
    mode: str = Field("", max_length=20, description=MODE_WORDS)
    agent: BodyId | None = Field(None, description=AGENT_WORDS)
    client_id: str = Field("", max_length=64, description=CLIENT_ID)
    parent: UUID | None = Field(None, description="Begins a new branch below this message of the conversation.")
    attachments: list[UUID] = Field([], description=ATTACHED)


class EditIn(StrictSchema):
    model_config = example(content="What is 12 * 13?")

    content: str = Field(description="What stands in place of the old text.")
    attachments: list[UUID] | None = Field(None, description="Files in place of the old message's, which it keeps.")
    client_id: str = Field("", max_length=64, description=CLIENT_ID)


class SentOut(Schema):
    model_config = example(message=QUESTION, run=RUN, injected=False)

    message: UUID = Field(description="The message that is on record now.")
    run: UUID = Field(description="The run that answers it.")
    injected: bool = Field(description="A run was going on; it reads the message.")


class MessagePatch(StrictSchema):
    model_config = example(feedback="good")

    pinned: StrictBool = Field(False, description="It stays in the agent's context, however long the talk becomes.")
    feedback: Literal["", "good", "bad"] = Field("", description="What you think of an answer; empty takes it back.")


class AttachmentOut(Schema):
    model_config = example(
        id=ATTACHMENT,
        filename="figures.csv",
        content_type="text/csv",
        size=1_024,
        conversation=None,
        status="queued",
        problem="",
        created_at=ASKED_AT,
    )

    id: UUID = Field(description="Goes into `attachments` of a message.")
    filename: str = Field(description="As it was uploaded.")
    content_type: str = Field(description="By its content, whatever was said of it.")
    size: int = Field(description="Bytes of what is kept: pictures are drawn anew.")
    conversation: UUID | None = Field(alias="conversation_id", description="Where it was sent.")
    status: str = Field(description="`queued` until a worker has read it, then `ready` or `failed`.")
    problem: str = Field(description="Why its text cannot be read.")
    created_at: datetime = Field(description="When it was uploaded.")

    @staticmethod
    def resolve_problem(row: Any) -> str:
        return explain(row.problem) if row.problem else ""


class MessageOut(RowOut):
    model_config = example(
        id=ANSWER,
        conversation=CONVERSATION,
        parent=QUESTION,
        run=RUN,
        role="assistant",
        content="The result is 144.",
        attachments=[],
        pinned=False,
        feedback="",
        partial=False,
        injected=False,
        recalled=False,
        created_at=ENDED_AT,
    )

    id: UUID = Field(description="Names the message in all other calls.")
    conversation: UUID = Field(alias="conversation_id", description="Where it was said.")
    parent: UUID | None = Field(alias="parent_id", description="The message before it; null at the beginning.")
    run: UUID | None = Field(
        alias="run_id", description="The run that wrote it or, for what was said meanwhile, reads it."
    )
    role: str = Field(description="user or assistant.")
    content: str = Field(description="Markdown.")
    attachments: list[AttachmentOut] = Field(alias="files", description="The files that came with it, in order.")
    pinned: bool = Field(description="It stays in the agent's context.")
    feedback: str = Field(description="good, bad or empty.")
    partial: bool = Field(description="The answer was stopped or broke off.")
    injected: bool = Field(description="It was sent while a run was going on.")
    recalled: bool = Field(description="It was taken back before anybody read it.")
    created_at: datetime = Field(description="When it was said.")


class ReturnedOut(Schema):
    model_config = example(
        items=[{**shown(MessageOut)[0], "role": "user", "content": "And 13 * 13?", "injected": True}]
    )

    items: list[MessageOut] = Field(description="The messages, in the order they were sent.")
