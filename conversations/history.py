"""What the agent is told of the conversation so far."""

from agentapp.engine import Message, estimate_tokens
from conversations.models import Message as Row
from conversations.models import Run

MAX_TURNS_READ = 200


def history(run: Run, budget: int) -> list[Message]:
    """The messages before the run's own, oldest first: all pinned ones, and the newest others that fit.

    `budget` is in tokens. Pinned messages take at most half of it, newest first.
    """
    rows = (
        Row.objects.filter(conversation_id=run.conversation_id, recalled=False, created_at__lt=run.message.created_at)
        .exclude(id=run.message_id)
        .order_by("-created_at", "-id")
    )
    recent = list(rows[:MAX_TURNS_READ])
    older_pins = list(rows.filter(pinned=True)[:MAX_TURNS_READ]) if len(recent) == MAX_TURNS_READ else []
    pinned = _newest_that_fit([row for row in recent if row.pinned] + older_pins, budget // 2)
    left = budget - sum(_cost(row) for row in pinned)
    others = _newest_that_fit([row for row in recent if row.id not in {p.id for p in pinned}], left)
    return [_message(row) for row in sorted([*pinned, *others], key=lambda row: (row.created_at, row.id))]


def _newest_that_fit(rows: list[Row], budget: int) -> list[Row]:
    """A run of the newest rows; a gap would make the rest hard to follow."""
    fitting: dict[object, Row] = {}
    for row in rows:
        budget -= _cost(row) if row.id not in fitting else 0
        if budget < 0:
            break
        fitting[row.id] = row
    return list(fitting.values())


def _message(row: Row) -> Message:
    if row.role == Row.Role.USER:
        return Message.user(row.content, pinned=row.pinned)
    return Message("assistant", row.content, pinned=row.pinned)


def _cost(row: Row) -> int:
    return estimate_tokens([_message(row)])
