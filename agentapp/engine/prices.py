"""What tokens cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .messages import Usage

MILLION = 1_000_000


class Prices(NamedTuple):
    """Micro-units of money for a million tokens. Cached tokens are part of the input, reasoning of the output."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    def cost_of(self, usage: Usage) -> int:
        """Micro-units, rounded up: many small calls must not come for nothing."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        reasoning = min(usage.reasoning_tokens, usage.output_tokens)
        parts = (
            (usage.input_tokens - cached) * self.input,
            cached * self.cached,
            (usage.output_tokens - reasoning) * self.output,
            reasoning * self.reasoning,
        )
        return -(-sum(parts) // MILLION)


def price_of(model: object, usage: Usage) -> float:
    """What a call of this model cost, in micro-units; 0 for a model without a method `cost_of(usage)`."""
    cost_of: Callable[[Usage], float] | None = getattr(model, "cost_of", None)
    return cost_of(usage) if cost_of else 0
