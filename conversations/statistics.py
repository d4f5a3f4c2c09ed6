"""Figures over many runs, for the admin's first page: by day, by model, by person. A fixed number of queries."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.db.models import Aggregate, BigIntegerField, Count, F, FloatField, Q, QuerySet, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Extract, TruncDate
from django.utils import timezone

from conversations.models import Call, Run

PERIODS = (7, 30, 90)
LISTED = 12  # models and people of a table


class Percentile(Aggregate):
    """The value that the given share of the rows do not exceed."""

    function = "percentile_cont"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()

    def __init__(self, expression: Any, share: float, **extra: Any) -> None:
        super().__init__(expression, share=share, **extra)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a day, a model or a person. `cost` in micro-units; `median` and `slow` (19 of 20 are faster) in seconds."""

    name: Any
    runs: int = 0
    failed: int = 0
    tokens: int = 0
    cost: int = 0
    median: float | None = None
    slow: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What the figures are about; an empty one is everything."""

    days: int = 30
    agent: int | None = None
    model: str = ""

    @property
    def first_day(self) -> date:
        return timezone.localdate() - timedelta(days=self.days - 1)

    def runs(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = Run.objects.filter(created_at__gte=_start(self.first_day)).order_by()
        if self.agent:
            rows = rows.filter(agent=self.agent)
        rows = rows.annotate(model_name=KT("model__name"))
        return rows.filter(model_name=self.model) if self.model else rows


def _start(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def _tokens(name: str) -> Any:
    return Coalesce(Cast(KT(f"usage__{name}"), BigIntegerField()), 0)


_COUNTED = {
    "runs": Count("pk"),
    "failed": Count("pk", filter=Q(status=Run.Status.FAILED)),
    "tokens": Sum(_tokens("input_tokens") + _tokens("output_tokens"), default=0),
    "spent": Sum("cost", default=0),
}


def _grouped(rows: QuerySet[Any], name: str) -> Any:
    """One row a value of `name`. Untyped: Django's stubs do not know the columns of such a query."""
    return rows.values(name).annotate(**_COUNTED)


def by_day(choice: Choice) -> list[Figures]:
    """Every day of the period, also those on which nothing ran, in the reader's time zone."""
    rows = _grouped(choice.runs().annotate(day=TruncDate("created_at")), "day")
    found = {row["day"]: _figures(row["day"], row) for row in rows}
    days = (choice.first_day + timedelta(days=number) for number in range(choice.days))
    return [found.get(day, Figures(day)) for day in days]


def by_model(choice: Choice) -> list[Figures]:
    """What the runs' models did; times are those of single calls to them."""
    rows = _grouped(choice.runs().exclude(model_name=None), "model_name").order_by("-runs", "model_name")
    seconds = Extract(F("ended_at") - F("started_at"), "epoch")
    calls: QuerySet[Any] = Call.objects.filter(
        kind="llm", started_at__gte=_start(choice.first_day), ended_at__isnull=False
    )
    if choice.agent:
        calls = calls.filter(run__agent=choice.agent)
    timed = (
        calls.order_by()
        .values(name=KT("request__model"))
        .annotate(median=Percentile(seconds, 0.5), slow=Percentile(seconds, 0.95))
    )
    times: dict[str, Any] = {row["name"]: row for row in timed}
    return [_figures(row["model_name"], row, times.get(row["model_name"], {})) for row in rows[:LISTED]]


def by_person(choice: Choice) -> list[Figures]:
    rows = _grouped(choice.runs(), "user__username").order_by("-spent", "-tokens", "-runs")
    return [_figures(row["user__username"], row) for row in rows[:LISTED]]


def totals(days: Iterable[Figures]) -> Figures:
    rows = list(days)
    return Figures("", *(sum(getattr(row, name) for row in rows) for name in ("runs", "failed", "tokens", "cost")))


def _figures(name: Any, row: dict[str, Any], times: dict[str, Any] | None = None) -> Figures:
    times = times or {}
    counted = (row["runs"], row["failed"], row["tokens"], row["spent"])
    return Figures(name, *counted, median=times.get("median"), slow=times.get("slow"))
