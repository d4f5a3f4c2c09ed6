"""What was used, added up from calls: so it belongs to the time of each call, and counts those of routing, selection
and compaction."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Literal

from django.contrib.postgres.aggregates import BoolOr
from django.db.models import BigIntegerField, Count, F, Q, QuerySet, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, TruncDate
from django.utils import timezone

from accounts.models import User
from conversations.models import Call, Run

By = Literal["day", "user", "model", "tool"]
LISTED = 500
MOST_DAYS = 366


@dataclass(frozen=True, slots=True)
class Usage:
    """Of a day, a user, a model or a tool. `cost` in micro-units; `estimated`: some of it is a guess of ours."""

    name: str
    runs: int
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost: int
    estimated: bool

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


def usage(user: User, by: By, since: date, until: date, *, own: bool = False) -> list[Usage]:
    """From the day `since` to the day `until`, in the reader's time zone: of one's own runs, of all with
    `view_all_runs` unless `own`. Days in order, all else with the most expensive first. One query."""
    runs = Run.objects.visible_to(user) if own else Run.objects.inspectable_by(user)
    calls: QuerySet[Any] = Call.objects.filter(
        run__in=runs, kind__in=["llm", "tool"], started_at__gte=_start(since), started_at__lt=_start(until + _A_DAY)
    )
    if by == "day":
        calls = calls.annotate(name=TruncDate("started_at"))
    elif by == "user":
        calls = calls.annotate(name=F("run__user__username"))
    elif by == "model":
        calls = calls.filter(kind="llm").annotate(name=Coalesce(KT("result__model"), KT("request__model")))
    else:
        calls = calls.filter(kind="tool").annotate(name=KT("request__name"))
    order = "name" if by == "day" else "-spent"
    rows = calls.order_by().values("name").annotate(**_SUMS).order_by(order, "name")[:LISTED]
    return [_row(row) for row in rows]


_A_DAY = timedelta(days=1)


def _start(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def _tokens(name: str) -> Any:
    return Sum(Coalesce(Cast(KT(f"usage__{name}"), BigIntegerField()), 0), default=0)


_SUMS: dict[str, Any] = {
    "runs": Count("run", distinct=True),
    "calls": Count("pk"),
    **{name: _tokens(name) for name in ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")},
    "spent": Sum("cost", default=0),
    "guessed": BoolOr(Q(usage__has_key="estimated")),
}


def _row(row: dict[str, Any]) -> Usage:
    names = ("runs", "calls", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
    figures = {name: row[name] for name in names}
    return Usage(str(row["name"] or "–"), **figures, cost=row["spent"], estimated=bool(row["guessed"]))
