"""Trying a model call again when that may help."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from .errors import IncompleteStream, ModelPaused, ModelUnavailable, OutOfTime

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential waits with full jitter; a provider's `Retry-After` wins, up to the longest wait."""

    retries: int = 3
    first_wait: float = 1.0
    longest_wait: float = 60.0

    def wait(self, attempt: int, error: Exception) -> float:
        wish = getattr(error, "retry_after", None)
        if wish is not None:
            return float(min(wish, self.longest_wait))
        longest = min(self.longest_wait, self.first_wait * 2**attempt)
        return random.uniform(0, longest)  # noqa: S311 (spreads load, guards nothing)


async def with_retries(policy: RetryPolicy, call: Callable[[], Awaitable[T]], patience: float | None = None) -> T:
    """Repeats transient errors and broken streams only; anything else is the caller's at once.

    With `patience` no attempt begins later than that many seconds from now: then `OutOfTime` is raised.
    """
    loop = asyncio.get_running_loop()
    until = None if patience is None else loop.time() + patience
    for attempt in range(policy.retries + 1):
        try:
            return await call()
        except ModelPaused:
            raise
        except (ModelUnavailable, IncompleteStream) as error:
            wait = policy.wait(attempt, error)
            if attempt == policy.retries:
                raise
            if until is not None and loop.time() + wait >= until:
                raise OutOfTime(f"no time is left to try again after: {error}") from error
            await asyncio.sleep(wait)
    raise AssertionError("unreachable")
