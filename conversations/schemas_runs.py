"""What the API takes and gives of runs: what they did, where they wait for people, what they used."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import Field

from accounts.examples import (
    AGENT,
    APPROVAL,
    ASKED,
    ASKED_AT,
    CONVERSATION,
    ENDED_AT,
    LATER,
    MODEL,
    QUESTION,
    RUN,
    STARTED_AT,
    USED,
    USER,
    example,
    shown,
)
from accounts.schemas import BodyId, Number, RowOut
from conversations.schemas import AGENT_WORDS, ATTACHED, CLIENT_ID, MODE_WORDS, StrictSchema

COST = "Micro-units of the currency."
POSITION = "The call's position in the run."


class RunIn(StrictSchema):
    model_config = example(input="What is 12 * 12?", wait=60)

    input: str = Field(description="The question.")
    mode: str = Field("", max_length=20, description=MODE_WORDS)
    agent: BodyId | None = Field(None, description=AGENT_WORDS)
    client_id: str = Field("", max_length=64, description=CLIENT_ID)
    attachments: list[UUID] = Field([], description=ATTACHED)
    wait: Annotated[float, Number] = Field(
        0, ge=0, le=60, description="Seconds to wait for the run's end; 0 answers at once."
    )


RunStatus = Literal["queued", "running", "waiting", "completed", "failed", "cancelled"]


class RunOut(RowOut):
    model_config = example(
        id=RUN,
        user=USER,
        conversation=CONVERSATION,
        message=QUESTION,
        agent=AGENT,
        status="completed",
        reason="final_answer",
        error="",
        answer="The result is 144.",
        mode="react",
        route={},
        model=MODEL,
        iterations=2,
        usage=USED,
        cost=1_830,
        created_at=ASKED_AT,
        started_at=STARTED_AT,
        ended_at=ENDED_AT,
    )

    id: UUID = Field(description="Names the run in all other calls.")
    user: int = Field(alias="user_id", description="Whose run it is.")
    conversation: UUID = Field(alias="conversation_id", description="Where it belongs.")
    message: UUID = Field(alias="message_id", description="The message that it answers.")
    agent: int | None = Field(alias="agent_id", description="Who answers; null when a route's model does.")
    status: str = Field(description="queued, running, waiting; at last completed, failed or cancelled.")
    reason: str = Field(description="Machine-readable: why it waits, or ended.")
    error: str = Field(description="What went wrong, for people; else empty.")
    answer: str = Field(description="Markdown; empty until it has ended.")
    mode: str = Field(description="How the agent works, such as react or plan_execute.")
    route: dict[str, Any] = Field(description="How it was worked on and why; empty where nothing had to be chosen.")
    model: dict[str, Any] = Field(description="The model that answers, and why it was chosen; empty until it is.")
    iterations: int = Field(description="How often the agent asked its model what to do.")
    usage: dict[str, Any] = Field(description="Model calls and tokens of all of them; empty at the beginning.")
    cost: int = Field(description=COST)
    created_at: datetime = Field(description="When it was asked for.")
    started_at: datetime | None = Field(description="When a worker first took it.")
    ended_at: datetime | None = Field(description="Null while it is going on.")


class CallOut(RowOut):
    model_config = example(
        key="react/1/tool/0",
        kind="tool",
        state="succeeded",
        request={"name": "calculator", "call_id": "call_0", "arguments": {"expression": "12 * 12"}},
        result={"content": "12 * 12 = 144", "is_error": False, "content_type": "text/plain", "artifacts": []},
        error="",
        usage={},
        cost=0,
        started_at="2026-01-31T12:00:00.902Z",
        ended_at="2026-01-31T12:00:00.906Z",
    )

    key: str = Field(description="Its position in the run, which no other call has.")
    kind: str = Field(description="llm, tool, or a smaller thing that is on record, such as a look at the clock.")
    state: str = Field(description="started, succeeded, failed, cancelled or unknown.")
    request: dict[str, Any] = Field(description="What the model or tool was asked.")
    result: dict[str, Any] | None = Field(description="What it gave; null until then.")
    error: str = Field(description="What went wrong; else empty.")
    usage: dict[str, Any] = Field(description="Tokens of a model's call; else empty.")
    cost: int = Field(description=COST)
    started_at: datetime = Field(description="When it began.")
    ended_at: datetime | None = Field(description="Null while it is going on, or when its end was not seen.")


class EventOut(RowOut):
    model_config = example(
        run=RUN,
        seq=4,
        channel="step",
        data={
            "type": "iteration",
            "status": "start",
            "iteration": 1,
            "call_id": "react/1/tool/0",
            "tool_name": "calculator",
            "tool_args": {"expression": "12 * 12"},
        },
        at="2026-01-31T12:00:00.902Z",
    )

    run: UUID = Field(alias="run_id", description="Whose event it is.")
    seq: int = Field(description="Counts a run's events from 1 without a gap.")
    channel: str = Field(description="What it is about: run, step, answer, approval, done …")
    data: dict[str, Any] = Field(description="By channel, as `docs/protocol.md` lists them.")
    at: datetime = Field(description="When it happened.")


class RunFile(Schema):
    """A run with everything it did."""

    model_config = example(
        format="agentapp.run",
        version=1,
        title="What is 12 * 12?",
        exported_at=ENDED_AT,
        question="What is 12 * 12?",
        run=shown(RunOut)[0],
        calls=shown(CallOut),
        events=shown(EventOut),
    )

    format: Literal["agentapp.run"] = Field(description="What the file is.")
    version: Literal[1] = Field(description="Of the format.")
    title: str = Field(description="How the question begins.")
    exported_at: datetime = Field(description="When the file was made.")
    question: str = Field(description="The message that the run answers.")
    run: RunOut = Field(description="The run itself.")
    calls: list[CallOut] = Field(description="Its calls, in the order they began.")
    events: list[EventOut] = Field(description="Its events, by `seq`.")


ApprovalState = Literal["pending", "approved", "rejected", "expired", "consumed", "superseded"]


class ApprovalOut(Schema):
    model_config = example(
        id=APPROVAL,
        run=RUN,
        key="react/2/tool/0",
        tool_name="send_mail",
        arguments={"to": "grace@example.org", "subject": "The result", "text": "It is 144."},
        edited=None,
        state="pending",
        comment="",
        expires_at=LATER,
        decided_at=None,
        created_at=ASKED_AT,
    )

    id: UUID = Field(description="Names it when it is decided.")
    run: UUID = Field(alias="run_id", description="The run that waits for it.")
    key: str = Field(description=POSITION)
    tool_name: str = Field(description="What is to be called; `publish_answer` asks for a signature.")
    arguments: dict[str, Any] = Field(description="As the model proposed them.")
    edited: dict[str, Any] | None = Field(description="As the person changed them; null if they did not.")
    state: str = Field(description="pending, approved, rejected, expired, consumed (approved and used) or superseded.")
    comment: str = Field(description="What the person said to it.")
    expires_at: datetime = Field(description="When it is too late to decide.")
    decided_at: datetime | None = Field(description="Null until somebody has decided.")
    created_at: datetime = Field(description="When it was asked for.")


class DecisionIn(StrictSchema):
    model_config = example(decision="approve", comment="Fine.")

    decision: Literal["approve", "allow", "reject", "withdraw"] = Field(
        description="`allow` approves this call and further ones of the tool in the conversation."
    )
    args: dict[str, Any] | None = Field(
        None, description="Changed arguments; they are checked against the tool's schema."
    )
    comment: str = Field("", max_length=1_000, description="The agent reads it when the call is rejected.")


class ResolutionIn(StrictSchema):
    model_config = example(call="react/2/tool/0", outcome="done", result="The mail has arrived.")

    call: str = Field(
        max_length=200, description="The `key` of the call, the one of `GET /runs/{id}/calls` whose `state` is unknown."
    )
    outcome: Literal["done", "not_done", "retry"] = Field(description="`retry` does it now, perhaps for a second time.")
    result: str = Field("", max_length=50_000, description="What it gave: the agent reads it as the call's result.")


class AnswerIn(StrictSchema):
    model_config = example(request=ASKED, action="accept", value={"city": "Lisbon"})

    request: UUID = Field(description="The question, from `GET /runs/{id}/questions` or the run's events.")
    action: Literal["accept", "decline", "withdraw"] = Field(
        "accept", description="`decline` lets the run go on without an answer, `withdraw` takes the question back."
    )
    value: dict[str, Any] = Field({}, description="The fields that the question asks for.")


class QuestionOut(Schema):
    model_config = example(
        id=ASKED,
        run=RUN,
        source="",
        text="Which city do you mean?",
        fields={"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}},
        url="",
        state="pending",
        answer={},
        expires_at=LATER,
        answered_at=None,
        created_at=ASKED_AT,
    )

    id: UUID = Field(description="Goes into `request` of the answer.")
    run: UUID = Field(alias="run_id", description="The run that asks.")
    source: str = Field(description="The tool that asks; empty: the agent.")
    text: str = Field(description="The question.")
    fields: dict[str, Any] = Field(description="JSON Schema of the answer; empty when there is nothing to fill in.")
    url: str = Field(description="A page that the person is asked to visit; else empty.")
    state: str = Field(description="pending, answered, declined, expired or superseded.")
    answer: dict[str, Any] = Field(description="What was answered; empty until then.")
    expires_at: datetime = Field(description="Until when it can be answered.")
    answered_at: datetime | None = Field(description="Null until it is answered.")
    created_at: datetime = Field(description="When it was asked.")


class UsageOut(Schema):
    model_config = example(
        name="2026-01-31",
        runs=1,
        calls=4,
        input_tokens=812,
        cached_tokens=256,
        output_tokens=45,
        reasoning_tokens=0,
        cost=1_830,
        estimated=False,
    )

    name: str = Field(description="The day, user, model or tool.")
    runs: int = Field(description="Runs with calls among these.")
    calls: int = Field(description="Calls of models and tools.")
    input_tokens: int = Field(description="Tokens that models read.")
    cached_tokens: int = Field(description="Those of them that came out of a cache.")
    output_tokens: int = Field(description="Tokens that models wrote.")
    reasoning_tokens: int = Field(description="Those of them that went into thinking.")
    cost: int = Field(description=COST)
    estimated: bool = Field(description="Some of it is an estimate, as an endpoint did not say what it used.")


class ModelStatus(Schema):
    state: str = Field(description="ready, downloading, loading, missing or failed.")
    message: str = Field(description="The same for people; empty when it is ready.")
    done_bytes: int = Field(description="Of a download.")
    total_bytes: int = Field(description="Of a download; 0 while nobody knows.")


class StatusOut(Schema):
    model_config = example(model={"state": "ready", "message": "", "done_bytes": 0, "total_bytes": 0}, worker=True)

    model: ModelStatus = Field(description="Whether a message that is sent now finds a model.")
    worker: bool = Field(description="Whether a worker has been seen in the last seconds.")
