"""What one run may spend, in the hands of the worker that holds it: asked with every call, so it is arithmetic.

Every record that the worker writes carries the sums (`Record.sums`), so a reservation is on record before its call
begins without a statement of its own. Budgets are asked only when the allotment does not cover a call.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from conversations.allotments import Allotted, Amount, BudgetExhausted
from conversations.models import Run

PAUSES = (0.2, 0.4, 0.8, 1.6, 3.2)  # seconds
Draw = Callable[[Amount, Amount, Amount], Awaitable[Allotted]]


class Purse:
    """`draw(spent, open_calls, need)` asks the budgets; it raises `BudgetExhausted`."""

    def __init__(self, run: Run, allotted: Allotted | None, draw: Draw) -> None:
        self._spent = Amount(run.cost, run.tokens)
        self._allotted = allotted
        self._open: dict[str, Amount] = {}
        self._draw = draw
        self._drawing = asyncio.Lock()
        self._refused: BudgetExhausted | None = None

    @property
    def sums(self) -> tuple[int, int, int, int]:
        """Settled and reserved: cost, tokens, cost, tokens."""
        return (*self._spent, *self._reserved)

    @property
    def _reserved(self) -> Amount:
        return Amount(sum(a.cost for a in self._open.values()), sum(a.tokens for a in self._open.values()))

    async def reserve(self, key: str, need: Amount, *, last: bool = False) -> None:
        """Sets aside what the call may take. All but the `last` one leave as much again for a last answer.

        Raises BudgetExhausted, LeaseLost.
        """
        wanted = need if last else need.times(2)
        async with self._drawing:  # calls side by side draw once for all
            if not self._covers(wanted):
                try:
                    self._allotted = await self._ask_budgets(wanted)
                except BudgetExhausted as refused:
                    self._refused = refused
                    raise
            self._open[key] = need

    def reserved(self, key: str) -> Amount:
        return self._open.get(key, Amount())

    def settle(self, key: str, amount: Amount) -> None:
        """What the call took in truth; what was set aside for it is free again."""
        self._open.pop(key, None)
        self._spent = self._spent.plus(amount)

    def ending(self, reason: str, answer: str) -> tuple[str, str]:
        """Reason and answer of the run's end. An agent that goes on after a failed call may not say that money was
        what it lacked; a final answer that a model gave is one all the same."""
        whole = reason == "final_answer" and self._spent != Amount()
        if self._refused is None or reason.startswith("limit:") or whole:
            return reason, answer
        found = f"\n\n{answer}" if self._spent != Amount() else ""
        return "limit:budget", f"{self._refused.message}{found}"

    async def _ask_budgets(self, wanted: Amount) -> Allotted:
        """Waits a little while other runs hold what they may not need: of many that begin at once none is refused for
        what the others only set aside."""
        for pause in PAUSES:
            try:
                return await self._draw(self._spent, self._reserved, wanted)
            except BudgetExhausted as exhausted:
                if not exhausted.may_change:
                    raise
            await asyncio.sleep(pause)
        return await self._draw(self._spent, self._reserved, wanted)

    def _covers(self, wanted: Amount) -> bool:
        if self._allotted is None or datetime.now(UTC) >= self._allotted.until:
            return False
        taken = self._spent.plus(self._reserved).plus(wanted)
        return (self._allotted.cost is None or taken.cost <= self._allotted.cost) and (
            self._allotted.tokens is None or taken.tokens <= self._allotted.tokens
        )
