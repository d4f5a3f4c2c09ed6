"""How much one run may use."""

from __future__ import annotations

from dataclasses import dataclass, field

from .messages import Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """0 or None means no limit. One model call of `model_calls` is kept for the answer.

    `cost` counts micro-units of money, for models that have a `cost_of(usage)`.
    """

    model_calls: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


@dataclass(slots=True)
class Spent:
    """What a run has used, counted from recorded results, so that a resumed run counts the same."""

    limits: Limits
    usage: Usage = field(default_factory=Usage)
    tool_calls: int = 0
    cost: float = 0
    seconds: float = 0

    def add(self, usage: Usage, cost: float, seconds: float = 0) -> None:
        self.usage += usage
        self.cost += cost
        self.seconds += seconds

    def reached(self) -> str | None:
        """The name of the first limit that forbids another call."""
        limits = self.limits
        checks = (
            ("model_calls", self.usage.calls + 1, limits.model_calls),
            ("tool_calls", self.tool_calls, limits.tool_calls),
            ("tokens", self.usage.input_tokens + self.usage.output_tokens, limits.tokens),
            ("cost", self.cost, limits.cost),
            ("seconds", self.seconds, limits.seconds),
        )
        return next((name for name, used, limit in checks if limit and used >= limit), None)

    def reserve_tool_calls(self, wanted: int) -> int:
        """Takes a whole batch at once; returns how many of it may start."""
        limit = self.limits.tool_calls
        granted = min(wanted, max(0, limit - self.tool_calls)) if limit else wanted
        self.tool_calls += granted
        return granted
