"""What people do with conversations and runs. Each function owns its transaction and starts from the user: what is
not theirs does not exist."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from conversations import live
from conversations.cleaning import clean
from conversations.errors import (
    AlreadyRead,
    EmptyMessage,
    MessageTooLong,
    NotFound,
    RunActive,
    RunEnded,
    TooManyMessages,
)
from conversations.lifecycle import after_commit, end_run, start_run, tell_message, wake
from conversations.models import Conversation, Inspection, Interrupt, Message, Run
from tools_admin.services import default_agent

if TYPE_CHECKING:
    from accounts.models import User

TITLE_CHARS = 80
MOST_WAITING = 50  # messages that a running agent has not read


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that is on record, and the run that will answer it."""

    conversation: Conversation
    message: Message
    run: Run
    injected: bool


def send_message(
    user: "User", content: str, *, conversation_id: UUID | None = None, client_id: str = "", mode: str = ""
) -> Sent:
    """Stores a message and starts a run on it; while a run is going on the message becomes its interrupt.

    The same `client_id` twice makes one message. Raises EmptyMessage, MessageTooLong, NotFound, TooManyMessages.
    """
    content = clean(content).strip()
    if not content:
        raise EmptyMessage
    if len(content) > settings.MAX_MESSAGE_CHARS:
        raise MessageTooLong(len(content), settings.MAX_MESSAGE_CHARS)
    client_id = clean(client_id)[:64]
    try:
        return _send(user, content, conversation_id, client_id, mode)
    except IntegrityError:  # the same message, or another run, came in at the same moment: now it is there
        return _send(user, content, conversation_id, client_id, mode)


@transaction.atomic(durable=True)
def _send(user: "User", content: str, conversation_id: UUID | None, client_id: str, mode: str) -> Sent:
    if client_id and (known := _sent_before(user, client_id)):
        return known
    conversation = _conversation(user, conversation_id, content)
    active = Run.objects.active().select_for_update().filter(conversation=conversation).first()
    if active and active.interrupts.filter(state__in=Interrupt.UNSEEN).count() >= MOST_WAITING:
        raise TooManyMessages(MOST_WAITING)
    last = conversation.messages.order_by("-created_at").values_list("id", flat=True).first()
    message = Message.objects.create(
        conversation=conversation,
        parent_id=last,
        role=Message.Role.USER,
        content=content,
        client_id=client_id,
        injected=active is not None,
        run=active,
    )
    after_commit(tell_message, user.pk, message)
    if active:
        Interrupt.objects.create(run=active, message=message)
        after_commit(wake, active.id)
    run = active or start_run(message, mode=mode)
    Conversation.objects.filter(id=conversation.id).update(updated_at=Now())
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
    """Tries a failed or stopped run again, repeating nothing that was finished. Raises NotFound, RunActive."""
    try:
        with transaction.atomic(durable=True):
            run = _run(user, run_id)
            if run.is_active:
                raise RunActive
            if run.status == Run.Status.COMPLETED:
                raise RunEnded
            return start_run(run.message, mode=run.mode, copy_from=run)
    except IntegrityError:
        raise RunActive from None


def recall_message(user: "User", message_id: UUID) -> Message:
    """Takes back a message that was sent to a running agent and that no model call has read. Idempotent.

    Raises NotFound, AlreadyRead.
    """
    with transaction.atomic(durable=True):
        interrupts = Interrupt.objects.select_for_update(of=("self",)).filter(message_id=message_id)
        interrupt = interrupts.filter(message__in=Message.objects.visible_to(user)).first()
        if interrupt is None:
            raise NotFound("message")
        message = interrupt.message
        if interrupt.state == Interrupt.State.QUEUED:
            interrupt.state = Interrupt.State.RECALLED
            interrupt.save(update_fields=["state"])
            message.recalled = True
            message.save(update_fields=["recalled"])
            after_commit(tell_message, user.pk, message)
            after_commit(wake, interrupt.run_id)
        if not message.recalled:
            raise AlreadyRead
    return message


def pin_message(user: "User", message_id: UUID, pinned: bool) -> Message:
    message = Message.objects.visible_to(user).filter(id=message_id).first()
    if message is None:
        raise NotFound("message")
    message.pinned = pinned
    message.save(update_fields=["pinned"])
    return message


def change_conversation(user: "User", conversation_id: UUID, changes: dict[str, Any]) -> Conversation:
    """Title, pinned, archived."""
    conversation = Conversation.objects.visible_to(user).filter(id=conversation_id).first()
    if conversation is None:
        raise NotFound("conversation")
    for name in changes.keys() & {"title", "pinned", "archived"}:
        setattr(conversation, name, clean(changes[name]))
    with transaction.atomic(durable=True):
        conversation.save(update_fields=[*changes])
        after_commit(_tell_conversation, conversation, False)
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
        after_commit(_tell_conversation, Conversation(id=conversation.id, user_id=conversation.user_id), True)
        conversation.delete()


def record_inspection(run: Run, user: "User") -> None:
    """A look at somebody else's run is on record."""
    if run.user_id != user.pk:
        Inspection.objects.create(run=run, user=user)


def _sent_before(user: "User", client_id: str) -> Sent | None:
    message = (
        Message.objects.visible_to(user).filter(client_id=client_id).select_related("conversation", "interrupt").first()
    )
    if message is None:
        return None
    run = message.run or Run.objects.filter(message=message).order_by("created_at").first()
    return Sent(message.conversation, message, run, message.injected) if run else None


def _conversation(user: "User", conversation_id: UUID | None, content: str) -> Conversation:
    if conversation_id is None:
        conversation = Conversation.objects.create(user=user, agent=default_agent(), title=_title(content))
        after_commit(_tell_conversation, conversation, False)
        return conversation
    found = Conversation.objects.visible_to(user).select_related("agent").filter(id=conversation_id).first()
    if found is None:
        raise NotFound("conversation")
    return found


def _title(content: str) -> str:
    line = content.split("\n", 1)[0].strip()
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"


def _run(user: "User", run_id: UUID) -> Run:
    run = Run.objects.visible_to(user).select_for_update().filter(id=run_id).first()
    if run is None:
        raise NotFound("run")
    return run


def _tell_conversation(conversation: Conversation, deleted: bool) -> None:
    data = {
        "id": str(conversation.id),
        "title": conversation.title,
        "pinned": conversation.pinned,
        "archived": conversation.archived,
        "deleted": deleted,
        "status": "idle",
    }
    live.tell_user(conversation.user_id, "conversation", data)
