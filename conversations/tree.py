"""The tree of a conversation's messages. Edits and regenerations are siblings; the visible branch leads from the
first message to `Conversation.leaf`. Recalled messages stand in no branch."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from django.db.models import Q

from accounts.models import User
from agentapp.database import prepared_cursor
from conversations.models import Conversation, Message

# Walks from a message up to the first one; the depth counts from 1 at the message itself.
_UPWARDS = """
WITH RECURSIVE branch(id, parent_id, depth) AS (
    SELECT id, parent_id, 1 FROM conversations_message WHERE id = %s
    UNION ALL
    SELECT above.id, above.parent_id, depth + 1
    FROM conversations_message above JOIN branch ON above.id = branch.parent_id WHERE depth < %s
)
SELECT message.* FROM conversations_message message JOIN branch ON branch.id = message.id
WHERE NOT recalled AND (depth <= %s OR pinned) ORDER BY depth DESC
"""
_DOWNWARDS = """
WITH RECURSIVE below(id, created_at) AS (
    SELECT id, created_at FROM conversations_message WHERE id = %s
    UNION ALL
    SELECT child.id, child.created_at
    FROM conversations_message child JOIN below ON child.parent_id = below.id WHERE NOT child.recalled
)
SELECT id FROM below ORDER BY created_at DESC, id DESC LIMIT 1
"""
# One page of a person's conversation downwards from the top, after the message that the page before ended with.
_PAGE = _UPWARDS.replace(
    "WHERE id = %s",
    "WHERE id = (SELECT leaf_id FROM conversations_conversation WHERE id = %s AND user_id = %s)",
).replace(
    "WHERE NOT recalled AND (depth <= %s OR pinned) ORDER BY depth DESC",
    "WHERE NOT recalled AND depth < (SELECT coalesce(max(depth), %s) FROM branch WHERE id = %s)"
    " ORDER BY depth DESC LIMIT %s",
)
WHOLE_BRANCH = 1_000_000


@dataclass(frozen=True, slots=True)
class Siblings:
    """Where a message stands among its alternatives; `position` counts from 1."""

    position: int
    count: int
    previous: UUID | None
    next: UUID | None


def branch(end: UUID | None, limit: int) -> list[Message]:
    """The last messages of the branch that ends with `end`, at most `limit` of them, oldest first."""
    return list(Message.objects.raw(_UPWARDS, [end, limit, limit])) if end else []


def branch_page(reader: User, conversation: UUID, after: UUID | None, limit: int) -> list[SimpleNamespace]:
    """The visible branch, oldest first, what follows `after`. Nothing when `after` is not in it, and nothing of what is
    not the reader's: `Conversation.objects.visible_to` in plain words, as programs ask for this page a lot. Rows have
    the columns of messages and are none: making those takes longer than reading them."""
    nowhere = 0 if after else WHOLE_BRANCH
    with prepared_cursor() as cursor:
        cursor.execute(_PAGE, [conversation, reader.pk, WHOLE_BRANCH, nowhere, after, limit])
        names = [column.name for column in cursor.description]
        return [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def branch_with_pins(end: UUID | None, limit: int) -> list[Message]:
    """The same, and all pinned messages of the branch, however old."""
    return list(Message.objects.raw(_UPWARDS, [end, WHOLE_BRANCH, limit])) if end else []


def newest_below(message: UUID) -> UUID:
    """The end of the newest branch through a message: what was written last below it, or the message itself."""
    (row,) = Message.objects.raw(_DOWNWARDS, [message])
    return row.id


def leave(message: Message) -> None:
    """Takes a recalled message out of its branch: what follows it follows its parent now."""
    Message.objects.filter(parent=message).update(parent=message.parent_id)
    Conversation.objects.filter(leaf=message).update(leaf=message.parent_id)


def siblings(conversation: Conversation, messages: Iterable[Message]) -> dict[UUID | None, list[UUID]]:
    """What follows each parent of these messages, and the last of them, oldest first: parent → its children."""
    shown = list(messages)
    parents = {message.parent_id for message in shown} | ({shown[-1].id} if shown else set())
    beneath = Q(parent__in=[parent for parent in parents if parent])
    if None in parents:
        beneath |= Q(parent=None)
    rows = Message.objects.filter(beneath, conversation=conversation, recalled=False)
    found: dict[UUID | None, list[UUID]] = {}
    for parent, child in rows.order_by("created_at", "id").values_list("parent", "id"):
        found.setdefault(parent, []).append(child)
    return found


def place(children: list[UUID], shown: UUID | None) -> Siblings | None:
    """The place of the shown one; None of the children is shown when a run has yet to write the next one."""
    number = children.index(shown) if shown in children else len(children)
    count = max(len(children), number + 1)
    if count < 2:
        return None
    after: Any = children[number + 1] if number + 1 < len(children) else None
    return Siblings(number + 1, count, children[number - 1] if number else None, after)
