"""Noticing that a model goes round in circles, by what it does and not by what it says."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from .messages import ToolCall
from .registry import ToolRegistry
from .tools import canonical_arguments

WARN_AT = 3
EQUAL_RESULTS = 3
BLOCKS = 2
WINDOW = 12
LONGEST_CYCLE = 4
CYCLE_REPEATS = 3
INVALID_AT = 3

BLOCKED = (
    "blocked repeat: this call was made before with the same result, so it did not run. Take another way or answer."
)


class LoopGuard:
    """Counts the calls of one run. A call is its name and its canonical arguments; ids do not count."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._counts: Counter[str] = Counter()
        self._equal: dict[str, tuple[str, int]] = {}
        self._invalid: Counter[str] = Counter()
        self._window: deque[str] = deque(maxlen=WINDOW)
        self._blocks = 0

    @property
    def tripped(self) -> bool:
        """Whether the run must end."""
        return self._blocks >= BLOCKS or any(count >= INVALID_AT for count in self._invalid.values())

    def refusal(self, call: ToolCall) -> str | None:
        """Why this call must not run once more."""
        identity = identity_of(call)
        if self._equal.get(identity, ("", 0))[1] >= EQUAL_RESULTS:
            return BLOCKED
        return BLOCKED if self._continues_cycle(identity) and not self._may_repeat(call) else None

    def note(self, calls: Sequence[ToolCall], results: Sequence[Mapping[str, Any]]) -> str:
        """Takes a finished batch into account; returns a warning for the model, or nothing."""
        warnings = []
        for call, result in zip(calls, results, strict=True):
            identity = identity_of(call)
            if result["content"] == BLOCKED:
                self._blocks += 1
                continue
            self._counts[identity] += 1
            self._window.append(identity)
            outcome, count = self._equal.get(identity, ("", 0))
            self._equal[identity] = (result["content"], count + 1 if outcome == result["content"] else 1)
            if result.get("not_run") == "invalid":
                self._invalid[identity] += 1
            if self._counts[identity] == WARN_AT:
                warnings.append(f"{call.name} was called {WARN_AT} times with the same arguments.")
        return " ".join([*warnings, "Do not repeat it: use what you have, or take another way."]) if warnings else ""

    def _continues_cycle(self, identity: str) -> bool:
        calls = [*self._window]
        for length in range(2, LONGEST_CYCLE + 1):
            tail = calls[-length * CYCLE_REPEATS :]
            cycle = tail[:length]
            whole = len(tail) == length * CYCLE_REPEATS and cycle * CYCLE_REPEATS == tail
            if whole and len(set(cycle)) > 1 and identity in cycle:
                return True
        return False

    def _may_repeat(self, call: ToolCall) -> bool:
        tool = self._registry.get(call.name)
        return tool is not None and tool.repeatable


def identity_of(call: ToolCall) -> str:
    return f"{call.name}\0{canonical_arguments(call.arguments) if call.invalid is None else call.invalid}"
