"""Messages to a running agent that it has not read: taken back by their sender, or given back after a stop."""

from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction

from conversations import tree
from conversations.errors import AlreadyRead, NotFound
from conversations.lifecycle import after_commit, wake
from conversations.models import Conversation, Interrupt, Message, Run
from conversations.telling import tell_message

if TYPE_CHECKING:
    from accounts.models import User


def recall_message(user: "User", message_id: UUID) -> Message:
    """Takes back a message that was sent to a running agent and that no model call has read. Idempotent.

    Raises NotFound, AlreadyRead.
    """
    with transaction.atomic(durable=True):
        list(Run.objects.visible_to(user).select_for_update().filter(interrupts__message=message_id))  # as its end does
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
            tree.leave(message)
            after_commit(tell_message, user.pk, message)
            after_commit(wake, interrupt.run_id)
        if not message.recalled:
            raise AlreadyRead
    return message


def collect_returned(user: "User", conversation_id: UUID) -> list[Message]:
    """Messages that nobody had read when their run was stopped, oldest first: each is given back once, to whoever
    asks first. Raises NotFound."""
    with transaction.atomic(durable=True):
        if not Conversation.objects.visible_to(user).filter(id=conversation_id).exists():
            raise NotFound("conversation")
        waiting = Interrupt.objects.filter(message__conversation=conversation_id, state=Interrupt.State.RETURNED)
        found = list(waiting.select_for_update(of=("self",)).select_related("message").order_by("id"))
        Interrupt.objects.filter(id__in=[interrupt.id for interrupt in found]).update(state=Interrupt.State.RECALLED)
    return [interrupt.message for interrupt in found]
