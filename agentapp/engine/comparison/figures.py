"""What attempts come to, by route: every one that was started counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

OUTCOMES = ("completed", "accepted", "declined", "failed", "broken_off")
MEASURES = ("model_calls", "tool_calls", "uncached", "cached", "output", "reasoning", "cost", "seconds")


class Counted(Protocol):
    """An attempt as it is kept."""

    route: str
    outcome: str
    recovery: str
    fault: str
    model_calls: int
    tool_calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost: int
    seconds: float


class Range(NamedTuple):
    mean: float = 0.0
    least: float = 0.0
    most: float = 0.0


class Recovery(NamedTuple):
    """Of the attempts that met a fault of one sort."""

    recovered: int = 0
    kept_searching: int = 0
    gave_up: int = 0

    @property
    def met(self) -> int:
        return sum(self)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one route. Tokens, calls, cost (micro-units) and seconds are of one attempt."""

    route: str
    started: int
    counts: dict[str, int]
    measures: dict[str, Range]
    after_failures: Recovery
    after_misleading: Recovery
    totals: dict[str, float]
    fewer_calls_but_failed: bool = False

    @property
    def completed(self) -> float:
        """The share of what was started, 0 to 1."""
        return self.counts["completed"] / self.started if self.started else 0.0

    @property
    def accepted(self) -> float:
        return self.counts["accepted"] / self.started if self.started else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "route": self.route,
            "started": self.started,
            **self.counts,
            "completed_share": round(self.completed, 4),
            "inappropriately_accepted_share": round(self.accepted, 4),
            **{name: self.measures[name]._asdict() for name in MEASURES},
            "after_failures": self.after_failures._asdict(),
            "after_misleading": self.after_misleading._asdict(),
            "fewer_calls_but_failed": self.fewer_calls_but_failed,
        }


def figures_of(attempts: Iterable[Counted]) -> list[Figures]:
    """One for each route, by completion first: a route that fails fast is not a good one. Of equals the one that
    accepts less that is wrong, then the one that takes fewer tokens."""
    by_route: dict[str, list[Counted]] = {}
    for one in attempts:
        by_route.setdefault(one.route, []).append(one)
    found = [_of_route(route, ones) for route, ones in by_route.items()]
    found.sort(key=_rank)
    if not found:
        return []
    best = found[0]
    return [_marked(one, best) for one in found]


def _rank(one: Figures) -> tuple[float, float, float, str]:
    tokens = one.measures["uncached"].mean + one.measures["cached"].mean + one.measures["output"].mean
    return (-one.completed, one.accepted, tokens, one.route)


def _marked(one: Figures, best: Figures) -> Figures:
    fewer = one.measures["model_calls"].mean < best.measures["model_calls"].mean
    if not (fewer and one.completed < best.completed):
        return one
    values = {name: getattr(one, name) for name in Figures.__slots__ if name != "fewer_calls_but_failed"}
    return Figures(**values, fewer_calls_but_failed=True)


def _of_route(route: str, attempts: Sequence[Counted]) -> Figures:
    rows = [_measured(one) for one in attempts]
    measures = {name: _range([row[name] for row in rows]) for name in MEASURES}
    failures = [one for one in attempts if one.fault and one.fault != "misleading"]
    misleading = [one for one in attempts if one.fault == "misleading"]
    return Figures(
        route,
        len(attempts),
        {name: sum(one.outcome == name for one in attempts) for name in OUTCOMES},
        measures,
        _recovery(failures),
        _recovery(misleading),
        {name: sum(row[name] for row in rows) for name in MEASURES},
    )


def _measured(one: Counted) -> dict[str, float]:
    return {
        "model_calls": one.model_calls,
        "tool_calls": one.tool_calls,
        "uncached": max(0, one.input_tokens - one.cached_tokens),
        "cached": one.cached_tokens,
        "output": one.output_tokens,
        "reasoning": one.reasoning_tokens,
        "cost": one.cost,
        "seconds": one.seconds,
    }


def _range(values: Sequence[float]) -> Range:
    return Range(sum(values) / len(values), min(values), max(values)) if values else Range()


def _recovery(attempts: Iterable[Counted]) -> Recovery:
    met = [one.recovery for one in attempts if one.recovery]
    return Recovery(*(met.count(name) for name in Recovery._fields))
