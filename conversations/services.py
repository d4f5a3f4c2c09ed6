"""What people do with conversations and runs. Each function owns its transaction and starts from the user: what is
not theirs does not exist."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.rates import count_message
from agentapp.database import prepared_cursor
from agentapp.plain_rows import Columns
from conversations.attachments import attach
from conversations.cleaning import clean
from conversations.errors import (
    EmptyMessage,
    MessageTooLong,
    NotFound,
    RunActive,
    RunEnded,
    TooManyMessages,
    UnknownMode,
)
from conversations.lifecycle import after_commit, end_run, start_run, wake
from conversations.models import Conversation, Interrupt, Message, Run
from conversations.telling import tell_branch, tell_conversation, tell_sent
from conversations.versions import check_version
from tools_admin.models import Agent
from tools_admin.modes import Mode
from tools_admin.services import agent_for

if TYPE_CHECKING:
    from accounts.models import User

MOST_WAITING = 50  # messages that a running agent has not read
_CONVERSATIONS, _MESSAGES = Columns(Conversation), Columns(Message)


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that is on record, and the run that will answer it."""

    conversation: Conversation
    message: Message
    run: Run
    injected: bool
    again: bool = False  # it was on record before


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message goes that does not follow the end of the visible branch: below `parent`, None is the top."""

    parent: UUID | None


def send_message(
    user: "User",
    content: str,
    *,
    conversation_id: UUID | None = None,
    client_id: str = "",
    mode: str = "",
    agent: int | None = None,
    place: Place | None = None,
    attachments: Sequence[UUID] = (),
) -> Sent:
    """Stores a message and starts a run on it; while a run is going on the message becomes its interrupt.

    The same `client_id` twice makes one message. An `agent` answers from now on in the conversation. With a `place` a
    new branch begins there, unless a run is going on. With `attachments` (ids) it needs no text.
    Raises EmptyMessage, MessageTooLong, UnknownMode, NotFound, TooManyMessages, RunActive, TooOften, and what `attach`
    raises.
    """
    content = clean(content).strip()
    if not content and not attachments:
        raise EmptyMessage
    if len(content) > settings.MAX_MESSAGE_CHARS:
        raise MessageTooLong(len(content), settings.MAX_MESSAGE_CHARS)
    if mode and mode not in Mode.values:
        raise UnknownMode(Mode.values)
    client_id = clean(client_id)[:64]
    count_message(user)
    try:
        return _send(user, content, conversation_id, client_id, mode, agent, place, attachments)
    except IntegrityError:  # the same message, or another run, came in at the same moment: now it is there
        return _send(user, content, conversation_id, client_id, mode, agent, place, attachments)


@transaction.atomic(durable=True)
def _send(
    user: "User",
    content: str,
    conversation_id: UUID | None,
    client_id: str,
    mode: str,
    agent: int | None,
    place: Place | None,
    attachments: Sequence[UUID],
) -> Sent:
    if client_id and (known := _sent_before(user, client_id)):
        return known
    new = conversation_id is None
    conversation = _found(user, conversation_id, agent) if conversation_id else _begun(user, content, agent)
    active = None
    if not new:
        active = Run.objects.active().select_for_update().filter(conversation=conversation).first()
    if active and place:
        raise RunActive
    if active and active.interrupts.filter(state__in=Interrupt.UNSEEN).count() >= MOST_WAITING:
        raise TooManyMessages(MOST_WAITING)
    if place and place.parent and not conversation.messages.filter(id=place.parent, recalled=False).exists():
        raise NotFound("message")
    files = attach(user, conversation, attachments)
    changes: dict[str, Any] = {"updated_at": Now(), "agent": conversation.agent_id}
    if files and not conversation.title:
        changes["title"] = conversation.title = Conversation.title_of(files[0].filename)
    message = Message(
        conversation=conversation,
        parent_id=place.parent if place else conversation.leaf_id,
        role=Message.Role.USER,
        content=content,
        attachments=[file.id for file in files],
        client_id=client_id,
        injected=active is not None,
        run=active,
    )
    message.files = files
    _MESSAGES.insert([message])
    if active:
        Interrupt.objects.create(run=active, message=message)
        after_commit(wake, active.id)
    found = conversation.agent if new else None
    run = active or start_run(message, user, mode=mode, agent=found, api_key_id=user.by_key_id)
    after_commit(tell_sent, conversation, message, new)  # behind the hint: a worker is on its way meanwhile
    if new:
        conversation.leaf = message
        _CONVERSATIONS.insert([conversation])
    else:
        Conversation.objects.filter(id=conversation.id).update(**changes, leaf=message)
    if place:
        conversation.leaf = message
        after_commit(tell_branch, conversation)
    return Sent(conversation, message, run, active is not None)


def cancel_run(user: "User", run_id: UUID) -> Run:
    """Stops a run: at once when no worker has it, else its worker is woken. Idempotent. Raises NotFound."""
    with transaction.atomic(durable=True):
        run = _run(user, run_id)
        if not run.is_active:
            return run
        if run.cancel_requested_at is None:
            run.cancel_requested_at = timezone.now()
            run.save(update_fields=["cancel_requested_at"])
        orphaned = Run.objects.filter(id=run.id, lease_expires_at__lt=Now()).exists()
        if run.status != Run.Status.RUNNING or orphaned:
            end_run(run, Run.Status.CANCELLED, "user")
    if run.is_active:
        wake(run.id)
    return run


def retry_run(user: "User", run_id: UUID) -> Run:
    """Tries a failed or stopped run again, repeating nothing that was finished.

    Raises NotFound, RunActive, TooOften.
    """
    count_message(user)
    try:
        with transaction.atomic(durable=True):
            run = _run(user, run_id)
            if run.is_active:
                raise RunActive
            if run.status == Run.Status.COMPLETED:
                raise RunEnded
            again = start_run(run.message, user, mode=run.mode, copy_from=run, api_key_id=user.by_key_id)
            set_leaf(run.conversation, _last_question(run))
            return again
    except IntegrityError:
        raise RunActive from None


def _last_question(run: Run) -> Message:
    """What an attempt at this run's message answers: the message, or the last one that was added to an attempt."""
    added = Message.objects.filter(run__message=run.message_id, role=Message.Role.USER, injected=True, recalled=False)
    return added.order_by("-created_at").first() or run.message


def create_conversation(user: "User", title: str = "", agent: int | None = None) -> Conversation:
    """An empty one. Raises NotFound."""
    with transaction.atomic(durable=True):
        conversation = _begun(user, clean(title), agent)
        conversation.save(force_insert=True)
        after_commit(tell_conversation, conversation, False)
        return conversation


def change_message(user: "User", message_id: UUID, changes: dict[str, Any], *, if_match: str | None = None) -> Message:
    """Pinned, feedback. With `if_match` only if it still has that `etag`. Raises NotFound, ChangedMeanwhile."""
    with transaction.atomic(durable=True):
        message = Message.objects.visible_to(user).select_for_update(of=("self",)).filter(id=message_id).first()
        if message is None:
            raise NotFound("message")
        check_version(if_match, message.etag)
        for name in changes.keys() & {"pinned", "feedback"}:
            setattr(message, name, changes[name])
        message.save(update_fields=[*changes])
    return message


def change_conversation(
    user: "User", conversation_id: UUID, changes: dict[str, Any], *, if_match: str | None = None
) -> Conversation:
    """Title, pinned, archived; the agent that answers from now on. With `if_match` only if it still has that `etag`.

    Raises NotFound, ChangedMeanwhile.
    """
    with transaction.atomic(durable=True):
        rows = Conversation.objects.visible_to(user).select_for_update()
        conversation = rows.filter(id=conversation_id).first()
        if conversation is None:
            raise NotFound("conversation")
        check_version(if_match, conversation.etag)
        for name in changes.keys() & {"title", "pinned", "archived"}:
            setattr(conversation, name, clean(changes[name]))
        if "agent" in changes:
            conversation.agent = _agent(user, changes["agent"])
        conversation.save(update_fields=[*changes])
        after_commit(tell_conversation, conversation, False)
    return conversation


def delete_conversation(user: "User", conversation_id: UUID) -> None:
    """Stops its run first, then deletes conversation, messages, runs and their record."""
    with transaction.atomic(durable=True):
        conversation = Conversation.objects.visible_to(user).select_for_update().filter(id=conversation_id).first()
        if conversation is None:
            raise NotFound("conversation")
        active = Run.objects.active().select_for_update().filter(conversation=conversation).first()
        if active:
            end_run(active, Run.Status.CANCELLED, "conversation_deleted")
            after_commit(wake, active.id)
        after_commit(tell_conversation, Conversation(id=conversation.id, user_id=conversation.user_id), True)
        conversation.delete()


def _sent_before(user: "User", client_id: str) -> Sent | None:
    with prepared_cursor() as cursor:  # nearly always there is none, and the ORM takes eight times as long to say so
        cursor.execute("SELECT 1 FROM conversations_message WHERE client_id = %s LIMIT 1", [client_id])
        if cursor.fetchone() is None:
            return None
    sent = Message.objects.visible_to(user).filter(client_id=client_id)
    message = sent.select_related("conversation").first()
    if message is None:  # another person's program counts alike
        return None
    run = message.run or Run.objects.filter(message=message).order_by("created_at").first()
    return Sent(message.conversation, message, run, message.injected, again=True) if run else None


def _begun(user: "User", content: str, agent: int | None) -> Conversation:
    """A new conversation, still to be written."""
    return Conversation(
        user=user, agent=_agent(user, agent) if agent else agent_for(user), title=Conversation.title_of(content)
    )


def _found(user: "User", conversation_id: UUID, agent: int | None) -> Conversation:
    found = Conversation.objects.visible_to(user).filter(id=conversation_id).first()
    if found is None:
        raise NotFound("conversation")
    if agent:
        found.agent = _agent(user, agent)
    return found


def _agent(user: "User", agent: int) -> Agent:
    found = Agent.objects.visible_to(user).filter(pk=agent).first()
    if found is None:
        raise NotFound("agent")
    return found


def _run(user: "User", run_id: UUID) -> Run:
    run = Run.objects.visible_to(user).select_for_update().filter(id=run_id).first()
    if run is None:
        raise NotFound("run")
    return run


def set_leaf(conversation: Conversation, leaf: Message) -> None:
    """Makes the branch that ends here the visible one, for all pages."""
    conversation.leaf = leaf
    Conversation.objects.filter(id=conversation.id).update(updated_at=Now(), leaf=leaf)
    after_commit(tell_branch, conversation)
