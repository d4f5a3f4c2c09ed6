"""How far a call of a tool has come, as its server tells it in the middle: an event now and then."""

import math
from collections.abc import Callable
from time import monotonic

from agentapp.engine import Event, current_call_key
from conversations.journal import DatabaseJournal
from tools_admin.connectors.person import Progress

# A server may say something thousand times a second. The longer a call takes, the less a step of it matters.
EVERY_SECONDS, EVERY_PART = 1.0, 0.05
MESSAGE_CHARS = 200


class ProgressOfCalls:
    """Of one run in this worker."""

    def __init__(self, journal: DatabaseJournal) -> None:
        self._journal = journal

    def of_call(self) -> Callable[[Progress], None]:
        """For the call that is running here; what it gives may be called from any task."""
        call, begun = current_call_key(), monotonic()
        told, last = 0, -math.inf

        def tell(progress: Progress) -> None:
            nonlocal told, last
            now = monotonic()
            if call not in self._journal.open or now - last < max(EVERY_SECONDS, EVERY_PART * (now - begun)):
                return
            told, last = told + 1, now
            data = {"done": progress.done, "total": progress.total, "message": progress.message[:MESSAGE_CHARS]}
            event = Event("step", {"type": "progress", "call_id": call, **data})
            self._journal.note(f"{call}/progress/{self._journal.epoch}.{told}", event)

        return tell
