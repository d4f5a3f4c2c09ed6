"""Other ways through a conversation: a message written anew, an answer made anew, a look at the alternatives.

Each is refused while a run is going on: its answer belongs where its question stands.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db import IntegrityError, transaction

from accounts.models import User
from accounts.rates import count_message
from conversations import tree
from conversations.errors import NotAQuestion, NotFound, RunActive
from conversations.lifecycle import start_run
from conversations.models import Asked, Conversation, Message, Run
from conversations.services import Place, Sent, send_message, set_leaf


def edit_message(
    user: User, message_id: UUID, content: str, *, client_id: str = "", attachments: Sequence[UUID] | None = None
) -> Sent:
    """A message of the user in other words, beside the old one, with its files or with others; a run answers it.

    Raises NotFound, NotAQuestion, RunActive, and what sending raises.
    """
    message = _message(user, message_id)
    if message.role != Message.Role.USER:
        raise NotAQuestion
    return send_message(
        user,
        content,
        conversation_id=message.conversation_id,
        client_id=client_id,
        place=Place(message.parent_id),
        attachments=[file.id for file in message.files] if attachments is None else attachments,
    )


def regenerate(user: User, message_id: UUID) -> Run:
    """Another answer beside this one; for a message of the user, another answer to it. Raises NotFound, RunActive,
    TooOften."""
    count_message(user)
    try:
        with transaction.atomic(durable=True):
            message = _message(user, message_id)
            question = message if message.role == Message.Role.USER else message.parent
            if question is None:
                raise NotFound("message")
            _refuse_while_running(message.conversation)
            mode = message.run.mode if message.run else ""
            asked = Asked.objects.filter(run__message=question).order_by("run__created_at").last()
            run = start_run(question, user, mode=mode, asked=asked, api_key_id=user.by_key_id)
            set_leaf(message.conversation, question)
    except IntegrityError:
        raise RunActive from None
    return run


def show_branch(user: User, conversation_id: UUID, message_id: UUID) -> Conversation:
    """Makes the newest branch through this message the visible one. Raises NotFound, RunActive."""
    with transaction.atomic(durable=True):
        message = _message(user, message_id)
        if message.conversation_id != conversation_id:
            raise NotFound("message")
        # In this order: the row is held from here on, and whoever starts a run writes it before they commit.
        set_leaf(message.conversation, Message(id=tree.newest_below(message.id)))
        _refuse_while_running(message.conversation)
    return message.conversation


def _message(user: User, message_id: UUID) -> Message:
    rows = Message.objects.visible_to(user).select_related("conversation", "parent", "run")
    message = rows.filter(id=message_id, recalled=False).first()
    if message is None:
        raise NotFound("message")
    return message


def _refuse_while_running(conversation: Conversation) -> None:
    if Run.objects.active().filter(conversation=conversation).exists():
        raise RunActive
