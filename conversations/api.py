"""REST: endpoints take, services do, schemas give."""

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Annotated, Literal
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja import File, Query, Router, Status
from ninja.errors import HttpError
from ninja.files import UploadedFile

from accounts.auth import ApiAuth, caller
from accounts.examples import shown
from accounts.idempotency import client_id, idempotent
from accounts.paging import CURSOR, Limit, Page, TimeCursor
from accounts.schemas import Day, PageOut
from conversations import archive, branching, exchange, listing, recalling, services, tree
from conversations.api_runs import MARKDOWN
from conversations.api_runs import router as runs
from conversations.attachment_errors import FileTooLarge
from conversations.errors import BranchChanged
from conversations.exchange import ConversationFile
from conversations.health import worker_seen
from conversations.models import Conversation, Message, Run, load_files
from conversations.schemas import (
    WITH_ETAG,
    ConversationIn,
    ConversationOut,
    ConversationPatch,
    EditIn,
    IfMatch,
    MessageIn,
    MessageOut,
    MessagePatch,
    ReturnedOut,
    SentOut,
)
from conversations.schemas_runs import RunOut, StatusOut, UsageOut
from conversations.usage import MOST_DAYS, By, Usage, usage
from tools_admin.services import model_status

router = Router(tags=["Conversations"])

AS_FILE = {"file": json.dumps(shown(ConversationFile)[0])}


@router.post("/conversations", response={201: ConversationOut}, summary="Begin a conversation")
@idempotent
def create_conversation(request: HttpRequest, body: ConversationIn) -> Status[Conversation]:
    """An empty one. `POST /runs` begins one and asks at once."""
    return Status(201, services.create_conversation(caller(request), body.title, body.agent))


@router.post("/conversations/import", response={201: ConversationOut}, summary="Bring a conversation back")
@idempotent
def import_conversation(request: HttpRequest, body: ConversationFile) -> Status[Conversation]:
    """What `GET /conversations/{id}/export` gave as JSON, as a new conversation of yours: words and branches, no runs.

    Up to 2 MB and without files; `POST /conversations/import/file` takes more."""
    return Status(201, exchange.import_conversation(caller(request), body))


@router.post(
    "/conversations/import/file",
    response={201: ConversationOut},
    summary="Bring a conversation back with its files",
    openapi_extra={"requestBody": {"content": {"multipart/form-data": {"example": AS_FILE}}}},
)
@idempotent
def import_conversation_file(request: HttpRequest, file: File[UploadedFile]) -> Status[Conversation]:
    """Multipart, in the part `file`: an export as ZIP, or as JSON of up to 30 MB. Files are taken in like uploads, up
    to 200 of them."""
    if (file.size or 0) > settings.ATTACHMENT_QUOTA_BYTES + archive.MOST_WORDS:
        raise FileTooLarge(file.size or 0, settings.ATTACHMENT_QUOTA_BYTES)
    return Status(201, archive.import_file(caller(request), file))


@router.get("/conversations", response=PageOut[ConversationOut], summary="Your conversations")
def list_conversations(
    request: HttpRequest,
    search: Annotated[str, Query(description="Only those with these words in their title or messages.")] = "",
    archived: Annotated[bool, Query(description="Those that are out of the list instead.")] = False,
    cursor: TimeCursor = None,
    limit: Limit = 100,
) -> Page[Conversation]:
    """Pinned ones first, all of them on the first page, then the newest. `search` looks at titles and messages."""
    found = listing.list_conversations(
        caller(request), search=search, archived=archived, cursor=cursor or "", size=limit
    )
    return Page(found.conversations, found.next)


@router.get(
    "/conversations/{uuid:conversation_id}", response=ConversationOut, summary="A conversation", openapi_extra=WITH_ETAG
)
def get_conversation(request: HttpRequest, response: HttpResponse, conversation_id: UUID) -> Conversation:
    """Its title and settings; what was said comes with `/messages`. The `ETag` changes with the settings."""
    found = _own(request, conversation_id)
    response["ETag"] = found.etag
    return found


@router.get(
    "/conversations/{uuid:conversation_id}/export",
    response=ConversationFile,
    summary="A conversation as a file",
    openapi_extra={
        "responses": {
            200: {
                "content": {
                    "text/markdown": MARKDOWN,
                    "application/zip": {"schema": {"type": "string", "format": "binary"}},
                }
            }
        }
    },
)
def export_conversation(
    request: HttpRequest,
    conversation_id: UUID,
    format: Annotated[Literal["json", "markdown", "zip"], Query(description="What the file is.")] = "json",
) -> HttpResponseBase:
    """All branches and runs as JSON; the same with all files, as ZIP; or the visible branch to be read, as Markdown."""
    conversation = _own(request, conversation_id)
    if format == "zip":
        words, files = archive.with_files(conversation)
        zipped = StreamingHttpResponse(archive.write_archive(words, files), content_type="application/zip")
        return exchange.as_file(zipped, words, "zip")
    return exchange.download(exchange.export_conversation(conversation), format)


@router.patch(
    "/conversations/{uuid:conversation_id}",
    response=ConversationOut,
    summary="Change a conversation",
    openapi_extra=WITH_ETAG,
)
def change_conversation(
    request: HttpRequest,
    response: HttpResponse,
    conversation_id: UUID,
    body: ConversationPatch,
    if_match: IfMatch = None,
) -> Conversation:
    """Rename, pin, archive; let another agent answer; show another branch."""
    changes = body.model_dump(exclude_unset=True)
    branch = changes.pop("branch", None)
    found = services.change_conversation(caller(request), conversation_id, changes, if_match=if_match)
    if branch:
        found = branching.show_branch(caller(request), conversation_id, branch)
    response["ETag"] = found.etag
    return found


@router.delete("/conversations/{uuid:conversation_id}", response={204: None}, summary="Delete a conversation")
def delete_conversation(request: HttpRequest, conversation_id: UUID) -> Status[None]:
    """For good, with its messages, runs and files; a run that is going on is stopped."""
    services.delete_conversation(caller(request), conversation_id)
    return Status(204, None)


@router.post("/conversations/{uuid:conversation_id}/messages", response={202: SentOut}, summary="Send a message")
@idempotent
def send_message(request: HttpRequest, conversation_id: UUID, body: MessageIn) -> Status[dict[str, object]]:
    """Starts a run on it; while a run is going on, that run reads it."""
    sent = services.send_message(
        caller(request),
        body.content,
        conversation_id=conversation_id,
        client_id=body.client_id or client_id(request),
        mode=body.mode,
        agent=body.agent,
        place=services.Place(body.parent) if body.parent else None,
        attachments=body.attachments,
    )
    return Status(202, {"message": sent.message.id, "run": sent.run.id, "injected": sent.injected})


@router.get(
    "/conversations/{uuid:conversation_id}/messages", response=PageOut[MessageOut], summary="The visible branch"
)
def list_messages(
    request: HttpRequest,
    conversation_id: UUID,
    cursor: Annotated[UUID | None, Query(description=CURSOR)] = None,
    limit: Limit = 50,
) -> Page[SimpleNamespace]:
    """Oldest first. 409 `branch_changed` when another branch became the visible one between two pages."""
    found = tree.branch_page(caller(request), conversation_id, cursor, limit + 1)
    if not found and _own(request, conversation_id) and cursor:
        raise BranchChanged
    load_files(found)
    return Page(found[:limit], str(found[limit - 1].id) if len(found) > limit else None)


@router.post(
    "/conversations/{uuid:conversation_id}/collect",
    response=ReturnedOut,
    summary="Take what was not read before a stop",
)
@idempotent
def collect_returned(request: HttpRequest, conversation_id: UUID) -> dict[str, object]:
    """Messages that nobody had read when their run was stopped. Each is given out once."""
    return {"items": recalling.collect_returned(caller(request), conversation_id)}


@router.get("/messages/{uuid:message_id}", response=MessageOut, summary="A message", openapi_extra=WITH_ETAG)
def get_message(request: HttpRequest, response: HttpResponse, message_id: UUID) -> Message:
    """Of any branch."""
    found = Message.objects.visible_to(caller(request)).filter(id=message_id).first()
    if found is None:
        raise Http404
    response["ETag"] = found.etag
    return found


@router.patch(
    "/messages/{uuid:message_id}",
    response=MessageOut,
    summary="Pin a message, judge an answer",
    openapi_extra=WITH_ETAG,
)
def change_message(
    request: HttpRequest, response: HttpResponse, message_id: UUID, body: MessagePatch, if_match: IfMatch = None
) -> Message:
    """What it says stays; `edit` and `regenerate` make others beside it."""
    changes = body.model_dump(exclude_unset=True)
    found = services.change_message(caller(request), message_id, changes, if_match=if_match)
    response["ETag"] = found.etag
    return found


@router.post("/messages/{uuid:message_id}/edit", response={202: SentOut}, summary="Write a message anew")
@idempotent
def edit_message(request: HttpRequest, message_id: UUID, body: EditIn) -> Status[dict[str, object]]:
    """The new one stands beside the old one and is answered; 409 `run_active` while a run is going on."""
    sent = branching.edit_message(
        caller(request),
        message_id,
        body.content,
        client_id=body.client_id or client_id(request),
        attachments=body.attachments,
    )
    return Status(202, {"message": sent.message.id, "run": sent.run.id, "injected": False})


@router.post("/messages/{uuid:message_id}/regenerate", response={202: RunOut}, summary="Make an answer anew")
@idempotent
def regenerate(request: HttpRequest, message_id: UUID) -> Status[Run]:
    """The new one stands beside the old one; 409 `run_active` while a run is going on."""
    return Status(202, branching.regenerate(caller(request), message_id))


@router.post("/messages/{uuid:message_id}/recall", response=MessageOut, summary="Take back a message nobody has read")
@idempotent
def recall_message(request: HttpRequest, message_id: UUID) -> Message:
    """One that was sent while a run was going on; 409 `already_read` once the agent has read it."""
    return recalling.recall_message(caller(request), message_id)


@router.get("/usage", response=PageOut[UsageOut], summary="Tokens and cost by day, user, model or tool", tags=["Usage"])
def get_usage(
    request: HttpRequest,
    by: Annotated[By, Query(description="What each row is about.")] = "day",
    since: Annotated[Day | None, Query(description="The first day, such as 2026-01-01.")] = None,
    until: Annotated[Day | None, Query(description="The last day; today at most.")] = None,
) -> Page[Usage]:
    """Of the last 30 days, unless told otherwise: of your runs, of all with the right to look at them."""
    until = min(until or timezone.localdate(), timezone.localdate())
    since = since or until - timedelta(days=29)
    if not 0 <= (until - since).days < MOST_DAYS:
        raise HttpError(400, f"`since` must be before `until`, and not more than {MOST_DAYS} days.")
    return Page(usage(caller(request), by, since, until), None)


@router.get("/status", response=StatusOut, auth=ApiAuth(any_key=True), summary="Is the model there, is a worker there?")
def status(request: HttpRequest) -> dict[str, object]:
    """What a message that is sent now would find."""
    return {"model": model_status(), "worker": worker_seen()}


def _own(request: HttpRequest, conversation_id: UUID) -> Conversation:
    found = Conversation.objects.visible_to(caller(request)).filter(id=conversation_id).first()
    if found is None:
        raise Http404
    return found


router.add_router("", runs)
