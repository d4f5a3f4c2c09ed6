"""How much one run may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .messages import Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """0 or None means no limit. One model call of `model_calls` is kept for the answer.

    `cost` counts micro-units of money. It holds for models that have a method `cost_of(usage)`, which gives the
    price of a call in them; for other models a call costs nothing. `seconds` counts the time of calls, not of waiting
    for a person.
    """

    model_calls: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


@dataclass(slots=True)
class Spent:
    """What a run has used, counted from recorded results, so that a resumed run counts the same.

    An agent that works for another has a `fork`: what it uses counts for both, and the limits are those of the whole.
    """

    limits: Limits
    parent: Spent | None = None
    usage: Usage = field(default_factory=Usage)
    tool_calls: int = 0
    cost: float = 0
    seconds: float = 0
    open_model_calls: int = 0

    def fork(self) -> Spent:
        """For one delegation. Its seconds go on from here; the caller counts them as those of one call."""
        return Spent(self.limits, self, seconds=self.seconds)

    def add(self, usage: Usage, cost: float, *, seconds: float = 0, tool_calls: int = 0) -> None:
        self.seconds += seconds
        for spent in self._line():
            spent.usage += usage
            spent.cost += cost
            spent.tool_calls += tool_calls

    def reached(self, *, ignoring: str = "") -> str | None:
        """The name of the first limit that forbids another call; a tool needs no model call."""
        limits, whole = self.limits, self._whole
        checks = (
            ("model_calls", whole.usage.calls + whole.open_model_calls + 1, limits.model_calls),
            ("tool_calls", whole.tool_calls, limits.tool_calls),
            ("tokens", whole.usage.input_tokens + whole.usage.output_tokens, limits.tokens),
            ("cost", whole.cost, limits.cost),
            ("seconds", self.seconds, limits.seconds),
        )
        return next((name for name, used, limit in checks if limit and used >= limit and name != ignoring), None)

    @property
    def seconds_left(self) -> float | None:
        return max(0.0, self.limits.seconds - self.seconds) if self.limits.seconds else None

    @contextmanager
    def model_call(self) -> Iterator[None]:
        """Counts a call from its beginning, so that agents working side by side do not all take the last one."""
        whole = self._whole
        whole.open_model_calls += 1
        try:
            yield
        finally:
            whole.open_model_calls -= 1

    def reserve_tool_calls(self, wanted: int) -> int:
        """Takes a whole batch at once; returns how many of it may start."""
        limit = self.limits.tool_calls
        granted = min(wanted, max(0, limit - self._whole.tool_calls)) if limit else wanted
        self.add(Usage(), 0, tool_calls=granted)
        return granted

    @property
    def _whole(self) -> Spent:
        return self if self.parent is None else self.parent._whole

    def _line(self) -> Iterator[Spent]:
        yield self
        if self.parent is not None:
            yield from self.parent._line()
