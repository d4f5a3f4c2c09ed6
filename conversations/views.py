"""The pages of the chat. Each starts from what its user may see and makes a fixed number of queries."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef, Q
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.budgets import tightest
from accounts.models import User
from conversations import tree
from conversations.approvals import SIGN
from conversations.attachments import MOST_IN_MESSAGE, attachment_of
from conversations.files import serve
from conversations.inspections import record_inspection, record_inspections
from conversations.listing import list_conversations
from conversations.models import (
    Approval,
    Artifact,
    Call,
    Conversation,
    Interrupt,
    Message,
    Question,
    Run,
    RunEvent,
    load_files,
)
from conversations.presenters import (
    Turn,
    attempts,
    build_turns,
    group_conversations,
    page_state,
    present_approval,
    present_doubt,
    present_question,
)
from conversations.trace import present_calls
from tools_admin.models import Agent
from tools_admin.modes import Mode, offered
from tools_admin.services import agents_for

SHOWN_MESSAGES = 100  # fifty turns
RUNS_PER_PAGE = 50
LISTED_REQUESTS = 100


def signed_in(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - `login_required` has seen to it
    return request.user


def sidebar(request: HttpRequest) -> dict[str, Any]:
    """The list of conversations as every page of a signed-in person shows it."""
    user = signed_in(request)
    search, archived = request.GET.get("q", "").strip(), request.GET.get("archived") == "1"
    try:
        found = list_conversations(user, search=search, archived=archived, cursor=request.GET.get("older", ""))
    except ValueError:
        raise Http404 from None
    waiting = Run.objects.visible_to(user).filter(status=Run.Status.WAITING)
    kept = {"q": search, "archived": "1" if archived else "", "older": found.next or ""}
    return {
        "groups": group_conversations(found.conversations, timezone.localdate()),
        "search": search,
        "archived": archived,
        "older": urlencode({name: value for name, value in kept.items() if value}) if found.next else "",
        "has_any": bool(found.conversations),
        "budget": tightest(user),
        "waiting": [str(run) for run in waiting.values_list("id", flat=True)[:LISTED_REQUESTS]],
    }


@require_safe
@login_required
def new(request: HttpRequest) -> HttpResponse:
    """An empty page to ask on."""
    agents = agents_for(signed_in(request))
    agent = _chosen(agents, request.GET.get("agent"))
    context: dict[str, Any] = {
        "conversation": None,
        **_agent(agent),
        "agents": agents,
        "turns": [],
        "page": {**_page(signed_in(request), None, []), "agent": agent.pk if agent else None},
        "sidebar": sidebar(request),
    }
    return render(request, "chat/conversation.html", context)


@require_safe
@login_required
def conversation(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """A conversation, its newest fifty turns; `?before=<message>` shows those before. With `?since=<time>` of the last
    change that the asker knows: 204 when nothing has changed."""
    returned = Interrupt.objects.filter(message__conversation=OuterRef("pk"), state=Interrupt.State.RETURNED)
    rows = Conversation.objects.visible_to(signed_in(request))
    found = rows.annotate(has_returned=Exists(returned)).filter(id=conversation_id).first()
    if found is None:
        raise Http404
    if request.GET.get("since") == found.updated_at.isoformat():
        return HttpResponse(status=204)  # a page asks what it has missed: nothing
    messages, earlier = _messages(found, request.GET.get("before"))
    turns = _turns(found, messages)
    agents = agents_for(signed_in(request))
    context = {
        "conversation": found,
        **_agent(_chosen(agents, str(found.agent_id))),
        "agents": agents,
        "turns": turns,
        "earlier": earlier,
        "page": {
            **_page(signed_in(request), found, page_state(turns)),
            "branch": str(found.leaf_id) if found.leaf_id else None,
            "returned": vars(found)["has_returned"],
        },
        "sidebar": sidebar(request),
    }
    return render(request, "chat/conversation.html", context)


def _chosen(agents: list[Agent], wanted: str | None) -> Agent | None:
    """Of the agents that a person may use the wanted one, else the first."""
    return next((agent for agent in agents if str(agent.pk) == wanted), agents[0] if agents else None)


def _messages(conversation: Conversation, before: str | None) -> tuple[list[Message], Message | None]:
    """The shown messages, oldest first, and the one that an "earlier" link starts from."""
    end = conversation.leaf_id
    if before:
        try:
            end = conversation.messages.values_list("parent", flat=True).get(id=UUID(before))
        except (ValueError, Message.DoesNotExist):
            raise Http404 from None
    newest = tree.branch(end, SHOWN_MESSAGES + 1)
    shown = newest[-SHOWN_MESSAGES:]
    return shown, shown[0] if len(newest) > SHOWN_MESSAGES else None


def _turns(conversation: Conversation, messages: list[Message]) -> list[Turn]:
    """Messages with their runs, the events of those, and the alternatives: four queries, with files five."""
    asked = [message.id for message in messages if message.role == Message.Role.USER]
    answering = [message.run_id for message in messages if message.role == Message.Role.ASSISTANT]
    load_files(messages)
    answer = Message.objects.filter(run=OuterRef("pk"), role=Message.Role.ASSISTANT)
    runs = Run.objects.filter(Q(message__in=asked) | Q(id__in=answering)).annotate(has_answer=Exists(answer))
    by_id = {run.id: run for run in runs}
    for message in messages:
        if message.run_id in by_id:
            message.run = by_id[message.run_id]
    began = attempts(messages, by_id.values(), {run.id for run in by_id.values() if vars(run)["has_answer"]})
    shown = [*filter(None, began.values()), *(by_id[run] for run in answering if run in by_id)]
    events = RunEvent.objects.filter(run__in=shown).exclude(channel="answer").order_by("run_id", "seq")
    return build_turns(messages, began, events, tree.siblings(conversation, messages))


def _agent(agent: Agent | None) -> dict[str, Any]:
    """Who answers, and in which ways it can be asked to work."""
    return {"agent": agent, "modes": offered(), "agent_mode": agent.mode if agent else str(Mode.REACT)}


def _page(user: User, conversation: Conversation | None, runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "user": str(user.pk),
        "conversation": str(conversation.id) if conversation else None,
        "changed": conversation.updated_at.isoformat() if conversation else None,
        "runs": runs,
        "max_message_chars": settings.MAX_MESSAGE_CHARS,
        "max_attachment_bytes": settings.MAX_ATTACHMENT_BYTES,
        "max_attachments": MOST_IN_MESSAGE,
    }


@require_safe
@login_required
def approvals(request: HttpRequest) -> HttpResponse:
    """What waits for this person: calls to decide on, and calls of unknown outcome; oldest first."""
    user = signed_in(request)
    asked = Approval.objects.visible_to(user).filter(state=Approval.State.PENDING)
    shown = list(asked.select_related("run__message", "run__user")[:LISTED_REQUESTS])
    record_inspections((approval.run for approval in shown), user)
    questions = Question.objects.visible_to(user).pending()
    doubtful = Call.objects.visible_to(user).in_doubt()
    verdicts = _verdicts(shown)
    requests = [
        *({**present_approval(approval, user), "verdict": verdicts.get(approval.run_id)} for approval in shown),
        *(present_question(question) for question in questions.select_related("run__message")[:LISTED_REQUESTS]),
        *(present_doubt(call) for call in doubtful.select_related("run__message")[:LISTED_REQUESTS]),
    ]
    context = {"requests": requests, "page": {"requests": requests}, "sidebar": sidebar(request)}
    return render(request, "chat/approvals.html", context)


def _verdicts(shown: Iterable[Approval]) -> dict[UUID, dict[str, Any]]:
    """By run, what the evaluator said last of a draft that is to be signed."""
    drafts = [approval.run_id for approval in shown if approval.tool_name == SIGN]
    if not drafts:
        return {}
    return dict(RunEvent.objects.filter(run__in=drafts, channel="verdict").order_by("seq").values_list("run", "data"))


@require_safe
@login_required
def runs(request: HttpRequest) -> HttpResponse:
    """One's own runs, newest first."""
    rows = Run.objects.visible_to(signed_in(request)).select_related("message", "conversation")
    page = Paginator(rows, RUNS_PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "chat/runs.html", {"runs": page, "sidebar": sidebar(request)})


@require_safe
@login_required
def run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Everything a run did. A look at somebody else's run is recorded before it is shown."""
    user = signed_in(request)
    rows = Run.objects.inspectable_by(user).select_related("message", "conversation", "user", "agent")
    found = rows.filter(id=run_id).first()
    if found is None:
        raise Http404
    record_inspection(found, user)
    calls = present_calls(found, Call.objects.filter(run=found).order_by("started_at", "id"))
    context = {"run": found, "calls": calls, "own": found.user_id == user.pk, "sidebar": sidebar(request)}
    return render(request, "chat/run.html", context)


@require_safe
@login_required
def artifact(request: HttpRequest, artifact_id: UUID) -> FileResponse:
    """A file that a tool made: for downloading, or with `?preview` for a locked frame."""
    row = Artifact.objects.visible_to(signed_in(request)).filter(id=artifact_id).first()
    return serve(row, preview="preview" in request.GET)


@require_safe
@login_required
def attachment(request: HttpRequest, attachment_id: UUID) -> FileResponse:
    """A file that this person added to a message, or is about to."""
    return serve(attachment_of(signed_in(request), attachment_id))
