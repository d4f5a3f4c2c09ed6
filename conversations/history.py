"""What the agent is told of the conversation so far."""

from agentapp.engine import Message, estimate_tokens
from conversations.models import Message as Row
from conversations.models import Run
from conversations.tree import branch_with_pins

MAX_TURNS_READ = 200


def history(run: Run, budget: int) -> list[Message]:
    """The messages of the branch before the run's own, oldest first: all pinned ones, and the newest others that fit.

    `budget` is in tokens. Pinned messages take at most half of it, newest first.
    """
    before = branch_with_pins(run.message.parent_id, MAX_TURNS_READ)
    newest_first = before[::-1]
    pinned = _newest_that_fit([row for row in newest_first if row.pinned], budget // 2)
    left = budget - sum(_cost(row) for row in pinned)
    kept = {row.id for row in pinned}
    kept |= {row.id for row in _newest_that_fit([row for row in newest_first if row.id not in kept], left)}
    return [_message(row) for row in before if row.id in kept]


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
