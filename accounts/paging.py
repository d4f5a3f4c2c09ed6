"""Lists page by page: a cursor names the last row that was given, so that rows which come or go move nothing."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

from django.db.models import Q, QuerySet
from ninja import Query

T = TypeVar("T")

MOST = 200
Limit = Annotated[int, Query(ge=1, le=MOST, description="How many at most.")]
CURSOR = "`next` of the page before."
# What fits these patterns is a cursor: clients that make one up get the rows after that place.
TimeCursor = Annotated[str | None, Query(pattern=r"^[0-9]{1,16}\.[0-9a-f]{32}$", description=CURSOR)]
IdCursor = Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$", description=CURSOR)]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """`next` is the cursor of the page after it; None: this is the last one."""

    items: list[T]
    next: str | None


def time_cursor(when: datetime, number: UUID) -> str:
    return f"{(when - _EPOCH) // _MICROSECOND}.{number.hex}"


def read_time_cursor(cursor: str) -> tuple[datetime, UUID]:
    """Raises ValueError: this is no cursor."""
    micros, _, number = cursor.partition(".")
    try:
        return _EPOCH + int(micros) * _MICROSECOND, UUID(hex=number)
    except OverflowError:
        raise ValueError("no cursor") from None


def page_by_time(rows: QuerySet[Any], cursor: str | None, limit: int, *, newest_first: bool = False) -> Page[Any]:
    """Rows with `created_at` and a UUID, by time. One query."""
    if cursor:
        when, number = read_time_cursor(cursor)
        beyond = "lt" if newest_first else "gt"
        rows = rows.filter(Q(**{f"created_at__{beyond}": when}) | Q(**{"created_at": when, f"id__{beyond}": number}))
    order = ("-created_at", "-id") if newest_first else ("created_at", "id")
    found = list(rows.order_by(*order)[: limit + 1])
    last = found[limit - 1] if len(found) > limit else None
    return Page(found[:limit], time_cursor(last.created_at, last.id) if last else None)


def page_by_id(rows: QuerySet[Any], cursor: str | None, limit: int) -> Page[Any]:
    """Rows with a number, oldest first. One query."""
    found = list(rows.filter(id__gt=int(cursor or 0)).order_by("id")[: limit + 1])
    return Page(found[:limit], str(found[limit - 1].id) if len(found) > limit else None)
