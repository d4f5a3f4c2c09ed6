"""What the page of a comparison shows: figures and charts by route, tasks by route, another one beside it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from agentapp.engine.comparison import Figures, Task, figures_of
from conversations.comparison.services import ROUTES
from conversations.dashboard import money
from conversations.models import Comparison, ComparisonAttempt

WIDTH = 600  # units of a bar's drawing


@dataclass(frozen=True, slots=True)
class Bar:
    """One route in a chart. `bad` is drawn after `good`; both are in units of the drawing."""

    label: str
    text: str
    good: float
    bad: float = 0.0


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    bars: list[Bar]
    width: int = WIDTH


@dataclass(frozen=True, slots=True)
class Cell:
    """The attempts of one task in one route: how many completed of how many, and each of them."""

    completed: int
    started: int
    attempts: list[ComparisonAttempt]

    @property
    def state(self) -> str:
        """For the eye; the text says the same."""
        if any(one.outcome == "accepted" for one in self.attempts):
            return "bad"
        return "ok" if self.completed == self.started else "warn"


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure of one route, here and in the other comparison."""

    route: str
    measure: str
    here: str
    there: str
    change: str


def results(comparison: Comparison, beside: Comparison | None) -> dict[str, Any]:
    """In two queries, or three."""
    attempts = list(comparison.attempts.defer("answer", "trace"))
    figures = figures_of(attempts)
    return {
        "done": sum(one.outcome != "running" for one in attempts),
        "rows": [(route_label(one.route), one) for one in figures],
        "charts": _charts(figures) if figures else [],
        "matrix": _matrix(comparison, attempts),
        "route_labels": [route_label(route) for route in comparison.routes],
        "differences": differences(figures, figures_of(beside.attempts.defer("answer", "trace"))) if beside else [],
        "cost": money(sum(one.cost + one.judge_cost for one in attempts)),
    }


def route_label(route: str) -> str:
    return str(ROUTES.get(route, route))


def differences(here: Sequence[Figures], there: Sequence[Figures]) -> list[Difference]:
    """Of each route that both have, in the order of `here`."""
    others = {one.route: one for one in there}
    both = [(one, others[one.route]) for one in here if one.route in others]
    return [_difference(one, other, *measure) for one, other in both for measure in _MEASURES]


def _difference(
    one: Figures,
    other: Figures,
    title: Callable[[], str],
    value: Callable[[Figures], float],
    show: Callable[[float], str],
) -> Difference:
    a, b = value(one), value(other)
    change = show(abs(a - b))
    sign = "±" if change == show(0) else "+" if a > b else "−"
    return Difference(route_label(one.route), title(), show(a), show(b), sign + change)


def percent(value: float) -> str:
    return f"{number_format(round(value * 100), 0)} %"


def _whole(value: float) -> str:
    return number_format(round(value), 0, force_grouping=True)


def _tenth(value: float) -> str:
    return number_format(round(value, 1), 1, force_grouping=True)


def _hundredth(value: float) -> str:
    return number_format(round(value, 2), 2, force_grouping=True)


def _micro(value: float) -> str:
    return money(round(value))


def _tokens(one: Figures) -> float:
    return sum(one.measures[name].mean for name in ("uncached", "cached", "output"))


_MEASURES: tuple[tuple[Callable[[], str], Callable[[Figures], float], Callable[[float], str]], ...] = (
    (lambda: _("Completed"), lambda one: one.completed, percent),
    (lambda: _("Wrongly accepted"), lambda one: one.accepted, percent),
    (lambda: _("Model calls"), lambda one: one.measures["model_calls"].mean, _tenth),
    (lambda: _("Tokens"), _tokens, _whole),
    (lambda: _("Cost"), lambda one: one.measures["cost"].mean, _micro),
    (lambda: _("Seconds"), lambda one: one.measures["seconds"].mean, _hundredth),
)


def _charts(figures: Sequence[Figures]) -> list[Chart]:
    def share(one: Figures) -> Bar:
        text = percent(one.completed)
        if one.accepted:
            text = _("%(completed)s, wrong %(accepted)s") % {"completed": text, "accepted": percent(one.accepted)}
        return Bar(route_label(one.route), text, round(WIDTH * one.completed, 1), round(WIDTH * one.accepted, 1))

    def bars(value: Callable[[Figures], float], show: Callable[[float], str]) -> list[Bar]:
        highest = max(map(value, figures)) or 1
        return [
            Bar(route_label(one.route), show(value(one)), round(WIDTH * value(one) / highest, 1)) for one in figures
        ]

    return [
        Chart(_("Completed, and wrongly accepted"), [share(one) for one in figures]),
        Chart(_("Tokens of an attempt"), bars(_tokens, _whole)),
        Chart(_("Model calls of an attempt"), bars(lambda one: one.measures["model_calls"].mean, _tenth)),
        Chart(_("Seconds of an attempt"), bars(lambda one: one.measures["seconds"].mean, _hundredth)),
    ]


def _matrix(comparison: Comparison, attempts: Iterable[ComparisonAttempt]) -> list[tuple[Task, list[Cell | None]]]:
    by_place: dict[tuple[str, str], list[ComparisonAttempt]] = {}
    for one in attempts:
        by_place.setdefault((one.task, one.route), []).append(one)

    def cell(task: str, route: str) -> Cell | None:
        ones = by_place.get((task, route))
        return Cell(sum(one.outcome == "completed" for one in ones), len(ones), ones) if ones else None

    tasks = [Task.from_dict(data) for data in comparison.tasks]
    return [(task, [cell(task.id, route) for route in comparison.routes]) for task in tasks]
