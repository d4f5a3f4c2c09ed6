"""REST: endpoints take, services do, schemas give."""

from datetime import date, timedelta
from typing import Annotated
from uuid import UUID

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja import Router, Status
from ninja.errors import HttpError
from pydantic import Field

from accounts.auth import ApiAuth, AsyncApiAuth, caller, sign_in_of
from accounts.scopes import READING, Scope
from agentapp.database import in_thread
from conversations import (
    approvals,
    artifacts,
    branching,
    listing,
    questions,
    recalling,
    reconciliation,
    services,
    sse,
    tree,
)
from conversations.health import worker_seen
from conversations.models import Approval, Call, Conversation, Message, Question, Run, RunEvent
from conversations.schemas import (
    AnswerIn,
    ApprovalOut,
    ApprovalState,
    CallOut,
    ConversationOut,
    ConversationPage,
    ConversationPatch,
    DecisionIn,
    EditIn,
    EventOut,
    MessageIn,
    MessageOut,
    MessagePage,
    MessagePatch,
    QuestionOut,
    ResolutionIn,
    ReturnedOut,
    RunIn,
    RunOut,
    SentOut,
    StatusOut,
    UsageOut,
)
from conversations.usage import MOST_DAYS, By, Usage, usage
from conversations.watch import wait_for_end
from tools_admin.services import model_status

router = Router()

LISTED = 200
DECIDING = ApiAuth(Scope.APPROVE)


@router.post("/runs", response={200: RunOut, 202: RunOut}, auth=AsyncApiAuth(), summary="Start a run")
async def create_run(request: HttpRequest, body: RunIn) -> tuple[int, Run]:
    """Makes a conversation and a run. 200 when it ended within `wait` seconds, else 202."""
    user = caller(request)
    sent = await in_thread(
        services.send_message, user, body.input, mode=body.mode, agent=body.agent, client_id=body.client_id
    )
    if body.wait:
        await wait_for_end(sent.run.id, body.wait)
    run = await in_thread(Run.objects.visible_to(user).get, id=sent.run.id)
    return (202 if run.is_active else 200), run


@router.get("/runs/{uuid:run_id}", response=RunOut, summary="A run")
def get_run(request: HttpRequest, run_id: UUID) -> Run:
    return _inspectable(request, run_id)


@router.get("/runs/{uuid:run_id}/calls", response=list[CallOut], summary="The trace of a run")
def get_calls(request: HttpRequest, run_id: UUID) -> list[Call]:
    return list(_inspectable(request, run_id).calls.all())


@router.get("/runs/{uuid:run_id}/events", response=list[EventOut], auth=AsyncApiAuth(), summary="The events of a run")
async def get_events(
    request: HttpRequest, run_id: UUID, after: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
) -> list[RunEvent] | HttpResponseBase:
    """The durable ones as JSON; with `Accept: text/event-stream` also what comes, until the run has ended."""
    run = await in_thread(_inspectable, request, run_id)
    if not sse.wants_stream(request):
        return await in_thread(lambda: list(run.events.filter(seq__gt=after)))
    return sse.stream_run(run, sse.position(request, after), sign_in_of(request))


@router.post("/runs/{uuid:run_id}/cancel", response=RunOut, summary="Stop a run")
def cancel_run(request: HttpRequest, run_id: UUID) -> Run:
    return services.cancel_run(caller(request), run_id)


@router.post("/runs/{uuid:run_id}/retry", response={202: RunOut}, summary="Try a failed or stopped run again")
def retry_run(request: HttpRequest, run_id: UUID) -> tuple[int, Run]:
    return 202, services.retry_run(caller(request), run_id)


@router.post(
    "/runs/{uuid:run_id}/resolve",
    response=RunOut,
    auth=DECIDING,
    summary="Settle a call whose outcome is unknown",
)
def resolve(request: HttpRequest, run_id: UUID, body: ResolutionIn) -> Run:
    return reconciliation.resolve(caller(request), run_id, body.call, body.outcome, body.result)


@router.get("/runs/{uuid:run_id}/questions", response=list[QuestionOut], summary="What a run asked its person")
def list_questions(request: HttpRequest, run_id: UUID) -> list[Question]:
    if not Run.objects.visible_to(caller(request)).filter(id=run_id).exists():
        raise Http404
    return list(Question.objects.visible_to(caller(request)).filter(run_id=run_id)[:LISTED])


@router.post("/runs/{uuid:run_id}/answer", response=QuestionOut, summary="Answer a question of the agent or a tool")
def answer(request: HttpRequest, run_id: UUID, body: AnswerIn) -> Question:
    return questions.answer(caller(request), run_id, body.request, body.action, body.value)


@router.get("/artifacts/{uuid:artifact_id}", summary="A file that a tool made")
def get_artifact(request: HttpRequest, artifact_id: UUID) -> HttpResponseBase:
    return artifacts.serve(caller(request), artifact_id)


@router.get(
    "/approvals",
    response=list[ApprovalOut],
    auth=ApiAuth(Scope.APPROVE, *READING),
    summary="Requests that wait for you, or were decided",
)
def list_approvals(request: HttpRequest, state: ApprovalState = "pending") -> list[Approval]:
    """One's own, and those one decides on; with `approve` everybody's. Looks at somebody else's are recorded."""
    rows = list(Approval.objects.visible_to(caller(request)).filter(state=state).select_related("run")[:LISTED])
    services.record_inspections((row.run for row in rows), caller(request))
    return rows


@router.post(
    "/approvals/{uuid:approval_id}",
    response=ApprovalOut,
    auth=DECIDING,
    summary="Approve, reject or withdraw",
)
def decide(request: HttpRequest, approval_id: UUID, body: DecisionIn) -> Approval:
    return approvals.decide(caller(request), approval_id, body.decision, edited=body.args, comment=body.comment)


@router.get("/conversations", response=ConversationPage, summary="Your conversations")
def list_conversations(
    request: HttpRequest, search: str = "", archived: bool = False, cursor: str = ""
) -> dict[str, object]:
    """Pinned ones first, then the newest, 100 a page. `search` looks at titles and messages."""
    try:
        found = listing.list_conversations(caller(request), search=search, archived=archived, cursor=cursor)
    except ValueError:
        raise HttpError(400, "This is no cursor. Begin without one.") from None
    return {"items": found.conversations, "next": found.next}


@router.get("/conversations/{uuid:conversation_id}", response=ConversationOut, summary="A conversation")
def get_conversation(request: HttpRequest, conversation_id: UUID) -> Conversation:
    found = Conversation.objects.visible_to(caller(request)).filter(id=conversation_id).first()
    if found is None:
        raise Http404
    return found


@router.patch(
    "/conversations/{uuid:conversation_id}",
    response=ConversationOut,
    summary="Change a conversation",
)
def change_conversation(request: HttpRequest, conversation_id: UUID, body: ConversationPatch) -> Conversation:
    """Rename, pin, archive; let another agent answer; show another branch."""
    changes = body.dict(exclude_unset=True)
    branch = changes.pop("branch", None)
    if branch:
        branching.show_branch(caller(request), conversation_id, branch)
    return services.change_conversation(caller(request), conversation_id, changes)


@router.delete("/conversations/{uuid:conversation_id}", response={204: None}, summary="Delete a conversation")
def delete_conversation(request: HttpRequest, conversation_id: UUID) -> tuple[int, None]:
    services.delete_conversation(caller(request), conversation_id)
    return 204, None


@router.post("/conversations/{uuid:conversation_id}/messages", response={202: SentOut}, summary="Send a message")
def send_message(request: HttpRequest, conversation_id: UUID, body: MessageIn) -> tuple[int, dict[str, object]]:
    """Starts a run on it; while a run is going on, that run reads it."""
    sent = services.send_message(
        caller(request),
        body.content,
        conversation_id=conversation_id,
        client_id=body.client_id,
        mode=body.mode,
        agent=body.agent,
        place=services.Place(body.parent) if body.parent else None,
    )
    return 202, {"message": sent.message.id, "run": sent.run.id, "injected": sent.injected}


@router.get("/conversations/{uuid:conversation_id}/messages", response=MessagePage, summary="The visible branch")
def list_messages(request: HttpRequest, conversation_id: UUID, cursor: UUID | None = None) -> dict[str, object]:
    """Oldest first, 200 a page."""
    conversation = get_conversation(request, conversation_id)
    messages = tree.branch(conversation.leaf_id, tree.WHOLE_BRANCH)
    start = next((number + 1 for number, message in enumerate(messages) if message.id == cursor), 0)
    if cursor and not start:
        raise HttpError(400, "This cursor is of a branch that is not visible any more. Begin without one.")
    page = messages[start : start + LISTED]
    return {"items": page, "next": str(page[-1].id) if start + LISTED < len(messages) else None}


@router.post(
    "/conversations/{uuid:conversation_id}/collect",
    response=ReturnedOut,
    summary="Take what was not read before a stop",
)
def collect_returned(request: HttpRequest, conversation_id: UUID) -> dict[str, object]:
    """Messages that nobody had read when their run was stopped. Each is given out once."""
    return {"items": recalling.collect_returned(caller(request), conversation_id)}


@router.patch("/messages/{uuid:message_id}", response=MessageOut, summary="Pin a message, judge an answer")
def change_message(request: HttpRequest, message_id: UUID, body: MessagePatch) -> Message:
    return services.change_message(caller(request), message_id, body.dict(exclude_unset=True))


@router.post("/messages/{uuid:message_id}/edit", response={202: SentOut}, summary="Write a message anew")
def edit_message(request: HttpRequest, message_id: UUID, body: EditIn) -> Status[dict[str, object]]:
    """The new one stands beside the old one and is answered; 409 `run_active` while a run is going on."""
    sent = branching.edit_message(caller(request), message_id, body.content, client_id=body.client_id)
    return Status(202, {"message": sent.message.id, "run": sent.run.id, "injected": False})


@router.post("/messages/{uuid:message_id}/regenerate", response={202: RunOut}, summary="Make an answer anew")
def regenerate(request: HttpRequest, message_id: UUID) -> Status[Run]:
    """The new one stands beside the old one; 409 `run_active` while a run is going on."""
    return Status(202, branching.regenerate(caller(request), message_id))


@router.post("/messages/{uuid:message_id}/recall", response=MessageOut, summary="Take back a message nobody has read")
def recall_message(request: HttpRequest, message_id: UUID) -> Message:
    return recalling.recall_message(caller(request), message_id)


@router.get("/usage", response=list[UsageOut], summary="Tokens and cost by day, user, model or tool")
def get_usage(
    request: HttpRequest, by: By = "day", since: date | None = None, until: date | None = None
) -> list[Usage]:
    """Of the last 30 days, unless told otherwise: of your runs, of all with the right to look at them."""
    until = min(until or timezone.localdate(), timezone.localdate())
    since = since or until - timedelta(days=29)
    if not 0 <= (until - since).days < MOST_DAYS:
        raise HttpError(400, f"`since` must be before `until`, and not more than {MOST_DAYS} days.")
    return usage(caller(request), by, since, until)


@router.get("/status", response=StatusOut, auth=ApiAuth(any_key=True), summary="Is the model there, is a worker there?")
def status(request: HttpRequest) -> dict[str, object]:
    return {"model": model_status(), "worker": worker_seen()}


def _inspectable(request: HttpRequest, run_id: UUID) -> Run:
    """One's own run, or anybody's with `view_all_runs`: then the look is recorded."""
    user = caller(request)
    run = Run.objects.inspectable_by(user).filter(id=run_id).first()
    if run is None:
        raise Http404
    services.record_inspection(run, user)
    return run
