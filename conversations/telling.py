"""What a person's own stream is told of their conversations, runs and messages. Its failure is harmless: pages read
what they missed."""

from typing import Any

from conversations import live
from conversations.models import Conversation, Message, Run


def tell_branch(conversation: Conversation) -> None:
    """Pages that show the conversation read its new branch."""
    data = {"id": str(conversation.id), "branch": str(conversation.leaf_id)}
    live.tell_user(conversation.user_id, ("conversation", data))


def tell_conversation(conversation: Conversation, deleted: bool) -> None:
    live.tell_user(conversation.user_id, _conversation(conversation, deleted))


def tell_sent(conversation: Conversation, message: Message, new: bool) -> None:
    """A message, and the conversation that it begins."""
    begun = [_conversation(conversation, False)] if new else []
    live.tell_user(conversation.user_id, *begun, _message(message))


def tell_message(user_id: int, message: Message) -> None:
    live.tell_user(user_id, _message(message))


def tell_run(run: Run) -> None:
    data = {
        "id": str(run.id),
        "conversation": str(run.conversation_id),
        "status": str(run.status),
        "reason": run.reason,
    }
    live.tell_user(run.user_id, ("run", data))


def _conversation(conversation: Conversation, deleted: bool) -> tuple[str, dict[str, Any]]:
    return "conversation", {
        "id": str(conversation.id),
        "title": conversation.title,
        "pinned": conversation.pinned,
        "archived": conversation.archived,
        "deleted": deleted,
        "status": "idle",
    }


def _message(message: Message) -> tuple[str, dict[str, Any]]:
    return "message", {
        "id": str(message.id),
        "conversation": str(message.conversation_id),
        "role": message.role,
        "content": message.content,
        "client_id": message.client_id,
        "parent": str(message.parent_id) if message.parent_id else None,
        "injected": message.injected,
        "recalled": message.recalled,
        "attachments": [file.described for file in message.files],
    }
