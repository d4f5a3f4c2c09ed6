"""What the agent is told of the conversation so far."""

from uuid import UUID

from agentapp.engine import Message, estimate_tokens
from conversations.models import Message as Row
from conversations.talk import Talk


def history(talk: Talk, budget: int) -> list[Message]:
    """The messages of the branch before the run's own, oldest first: all pinned ones, and the newest others that fit.

    `budget` is in tokens. Pinned messages take at most half of it, newest first.
    """
    messages = {row.id: talk.message(row) for row in talk.before}
    cost = {number: estimate_tokens([message]) for number, message in messages.items()}
    newest_first = talk.before[::-1]
    pinned = _newest_that_fit([row for row in newest_first if row.pinned], cost, budget // 2)
    left = budget - sum(cost[row.id] for row in pinned)
    kept = {row.id for row in pinned}
    kept |= {row.id for row in _newest_that_fit([row for row in newest_first if row.id not in kept], cost, left)}
    return [message for number, message in messages.items() if number in kept]


def _newest_that_fit(rows: list[Row], cost: dict[UUID, int], budget: int) -> list[Row]:
    """A run of the newest rows; a gap would make the rest hard to follow."""
    fitting: dict[object, Row] = {}
    for row in rows:
        budget -= cost[row.id] if row.id not in fitting else 0
        if budget < 0:
            break
        fitting[row.id] = row
    return list(fitting.values())
