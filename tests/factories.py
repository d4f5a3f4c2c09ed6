"""Rows for tests: small functions, each with the least that is needed."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts import services
from accounts.models import User
from conversations.models import Conversation, Message, Run


def make_user(username: str = "ada", **fields: Any) -> User:
    return User.objects.create(username=username, password="!", **fields)


def holder_of(key: str) -> User | None:
    """Whom a key lets in."""
    found = services.usable_key(key)
    return found.user if found else None


def make_conversation(user: User, title: str = "Figures") -> Conversation:
    return Conversation.objects.create(user=user, title=title)


def make_message(conversation: Conversation, content: str = "Hello", role: str = "user", **fields: Any) -> Message:
    """It follows the end of the visible branch, unless `parent` says otherwise."""
    conversation.refresh_from_db(fields=["leaf"])
    fields.setdefault("parent_id", conversation.leaf_id)
    message = Message.objects.create(conversation=conversation, content=content, role=role, **fields)
    Conversation.objects.filter(id=conversation.id).update(leaf=message)
    conversation.leaf = message
    return message


def make_run(message: Message, status: str = "queued", **fields: Any) -> Run:
    ended = {"ended_at": timezone.now()} if status in ("completed", "failed", "cancelled") else {}
    return Run.objects.create(
        conversation=message.conversation,
        user=message.conversation.user,
        message=message,
        status=status,
        deadline=timezone.now() + timedelta(days=1),
        **{**ended, **fields},
    )
