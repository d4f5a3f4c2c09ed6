"""REST: runs, what they did, and how they are steered."""

import json
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from ninja import Query, Router, Status

from accounts.auth import ApiAuth, AsyncApiAuth, caller, sign_in_of
from accounts.examples import ENDED_AT, RUN
from accounts.idempotency import client_id, idempotent
from accounts.paging import IdCursor, Limit, Page, TimeCursor, page_by_id, page_by_time
from accounts.schemas import Id, Moment, PageOut
from accounts.scopes import READING, Scope
from agentapp.database import in_thread
from conversations import approvals, exchange, questions, reconciliation, services, sse
from conversations.files import AS_FILE, serve
from conversations.inspections import record_inspection, record_inspections
from conversations.models import Approval, Artifact, Call, Question, Run, RunEvent
from conversations.schemas_runs import (
    AnswerIn,
    ApprovalOut,
    ApprovalState,
    CallOut,
    DecisionIn,
    EventOut,
    QuestionOut,
    ResolutionIn,
    RunFile,
    RunIn,
    RunOut,
    RunStatus,
)
from conversations.watch import wait_for_end

router = Router(tags=["Runs"])

DECIDING = ApiAuth(Scope.APPROVE)
EVENTS = 500  # a page of them
Format = Annotated[Literal["json", "markdown"], Query(description="To be read by programs, or by people.")]
MARKDOWN = {"schema": {"type": "string"}, "example": "# What is 12 * 12?\n\n## Answer\n\nThe result is 144.\n"}
AS_MARKDOWN = {"responses": {200: {"content": {"text/markdown": MARKDOWN}}}}
_EVENT = {"run": RUN, "seq": 2, "channel": "step", "data": {"type": "answer", "status": "start"}, "at": ENDED_AT}
_ENVELOPE = {"type": "object", "required": ["run", "channel", "data", "at"]}
_LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "Of a stream: the last `id` that was read, in place of `after`.",
    "schema": {"type": "string"},
}
AS_STREAM = sse.described(
    {"id": "2", "event": "step", "data": json.dumps(_EVENT)},
    {"contentMediaType": "application/json", "contentSchema": _ENVELOPE},
)


@router.post("/runs", response={200: RunOut, 202: RunOut}, auth=AsyncApiAuth(), summary="Start a run")
@idempotent
async def create_run(request: HttpRequest, body: RunIn) -> Status[Run]:
    """Makes a conversation and a run. 200 when it ended within `wait` seconds, else 202."""
    user = caller(request)
    sent = await in_thread(
        services.send_message,
        user,
        body.input,
        mode=body.mode,
        agent=body.agent,
        client_id=body.client_id or client_id(request),
        attachments=body.attachments,
    )
    if body.wait:
        await wait_for_end(sent.run.id, body.wait)
    run = await in_thread(Run.objects.visible_to(user).get, id=sent.run.id)
    return Status(202 if run.is_active else 200, run)


@router.get("/runs", response=PageOut[RunOut], summary="Runs, the newest first")
def list_runs(
    request: HttpRequest,
    status: Annotated[RunStatus | None, Query(description="Only those in this state.")] = None,
    user: Annotated[Id | None, Query(description="Somebody else, with `view_all_runs`; each look is recorded.")] = None,
    agent: Annotated[Id | None, Query(description="Only those of this agent.")] = None,
    since: Annotated[Moment | None, Query(description="Only those from then on, such as 2026-01-31T12:00Z.")] = None,
    cursor: TimeCursor = None,
    limit: Limit = 50,
) -> Page[Run]:
    """Your own, unless `user` says whose."""
    me = caller(request)
    wanted: dict[str, Any] = {"status": status, "agent_id": agent, "created_at__gte": since}
    rows = Run.objects.inspectable_by(me).filter(user_id=user or me.pk)
    rows = rows.filter(**{name: value for name, value in wanted.items() if value is not None})
    found = page_by_time(rows, cursor, limit, newest_first=True)
    record_inspections(found.items, me)
    return found


@router.get("/runs/{uuid:run_id}", response=RunOut, summary="A run")
def get_run(request: HttpRequest, run_id: UUID) -> Run:
    """Ask again until it has ended, or watch its events."""
    return _inspectable(request, run_id)


@router.get("/runs/{uuid:run_id}/calls", response=PageOut[CallOut], summary="The trace of a run")
def get_calls(request: HttpRequest, run_id: UUID, cursor: IdCursor = None, limit: Limit = 100) -> Page[Call]:
    """Every call of a model and of a tool, in the order they began."""
    return page_by_id(Call.objects.filter(run=_inspectable(request, run_id)), cursor, limit)


@router.get(
    "/runs/{uuid:run_id}/events",
    response={200: PageOut[EventOut], 204: None},
    auth=AsyncApiAuth(),
    summary="The events of a run",
    openapi_extra={
        "parameters": [_LAST_EVENT_ID],
        "responses": {
            200: {"content": AS_STREAM},
            204: {"description": "As a stream: nothing is to come, do not come back"},
        },
    },
)
async def get_events(
    request: HttpRequest,
    run_id: UUID,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="The last `seq` that is known; `next` says it.")] = 0,
) -> Page[RunEvent] | HttpResponseBase:
    """The durable ones as JSON, 500 at once; with `Accept: text/event-stream` also what comes, until the run has ended.

    A stream goes on after `Last-Event-ID`."""
    run = await in_thread(_inspectable, request, run_id)
    if sse.wants_stream(request):
        return sse.stream_run(run, sse.position(request, after), sign_in_of(request))
    found = await in_thread(lambda: list(run.events.filter(seq__gt=after)[: EVENTS + 1]))
    return Page(found[:EVENTS], str(found[EVENTS - 1].seq) if len(found) > EVENTS else None)


@router.get(
    "/runs/{uuid:run_id}/export",
    response=RunFile,
    summary="A run with everything it did, as a file",
    openapi_extra=AS_MARKDOWN,
)
def export_run(request: HttpRequest, run_id: UUID, format: Format = "json") -> HttpResponseBase:
    """Question, calls, events and answer."""
    return exchange.download(exchange.export_run(_inspectable(request, run_id)), format)


@router.post("/runs/{uuid:run_id}/cancel", response=RunOut, summary="Stop a run")
@idempotent
def cancel_run(request: HttpRequest, run_id: UUID) -> Run:
    """One that has ended stays as it is."""
    return services.cancel_run(caller(request), run_id)


@router.post("/runs/{uuid:run_id}/retry", response={202: RunOut}, summary="Try a failed or stopped run again")
@idempotent
def retry_run(request: HttpRequest, run_id: UUID) -> Status[Run]:
    """A new run, which does nothing again that was finished."""
    return Status(202, services.retry_run(caller(request), run_id))


@router.post(
    "/runs/{uuid:run_id}/resolve", response=RunOut, auth=DECIDING, summary="Settle a call whose outcome is unknown"
)
@idempotent
def resolve(request: HttpRequest, run_id: UUID, body: ResolutionIn) -> Run:
    """A worker was killed in the middle of a call that must not be repeated: say what became of it, and the run goes
    on. Who said so is on record."""
    return reconciliation.resolve(caller(request), run_id, body.call, body.outcome, body.result)


@router.get("/runs/{uuid:run_id}/questions", response=PageOut[QuestionOut], summary="What a run asked its person")
def list_questions(request: HttpRequest, run_id: UUID, cursor: TimeCursor = None, limit: Limit = 50) -> Page[Question]:
    """The oldest first, answered ones too."""
    if not Run.objects.visible_to(caller(request)).filter(id=run_id).exists():
        raise Http404
    return page_by_time(Question.objects.visible_to(caller(request)).filter(run_id=run_id), cursor, limit)


@router.post("/runs/{uuid:run_id}/answer", response=QuestionOut, summary="Answer a question of the agent or a tool")
@idempotent
def answer(request: HttpRequest, run_id: UUID, body: AnswerIn) -> Question:
    """The same answer twice is one; another one later is 409 `nothing_to_answer`."""
    return questions.answer(caller(request), run_id, body.request, body.action, body.value)


@router.get("/artifacts/{uuid:artifact_id}", summary="A file that a tool made", openapi_extra=AS_FILE)
def get_artifact(request: HttpRequest, artifact_id: UUID) -> HttpResponseBase:
    """Pictures as what they are, all else as bytes."""
    return serve(Artifact.objects.visible_to(caller(request)).filter(id=artifact_id).first())


@router.get(
    "/approvals",
    response=PageOut[ApprovalOut],
    auth=ApiAuth(Scope.APPROVE, *READING),
    summary="Requests that wait for you, or were decided",
)
def list_approvals(
    request: HttpRequest,
    state: Annotated[ApprovalState, Query(description="Only those in this state.")] = "pending",
    cursor: TimeCursor = None,
    limit: Limit = 50,
) -> Page[Approval]:
    """One's own, and those one decides on; with `approve` everybody's. Looks at somebody else's are recorded."""
    rows = Approval.objects.visible_to(caller(request)).filter(state=state).select_related("run")
    found = page_by_time(rows, cursor, limit)
    record_inspections((row.run for row in found.items), caller(request))
    return found


@router.post("/approvals/{uuid:approval_id}", response=ApprovalOut, auth=DECIDING, summary="Approve or reject")
@idempotent
def decide(request: HttpRequest, approval_id: UUID, body: DecisionIn) -> Approval:
    """The same decision twice is one; another one later is 409 `already_decided`."""
    return approvals.decide(caller(request), approval_id, body.decision, edited=body.args, comment=body.comment)


def _inspectable(request: HttpRequest, run_id: UUID) -> Run:
    """One's own run, or anybody's with `view_all_runs`: then the look is recorded."""
    user = caller(request)
    run = Run.objects.inspectable_by(user).filter(id=run_id).first()
    if run is None:
        raise Http404
    record_inspection(run, user)
    return run
