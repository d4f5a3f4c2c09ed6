"""Days, weeks and months as people count them: in their own time zone."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Period(TextChoices):
    DAY = "day", _("Day")
    WEEK = "week", _("Week")
    MONTH = "month", _("Month")


def bounds(period: str, at: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Beginning and end of the period around `at`. Weeks begin on Monday."""
    first = at.astimezone(zone).date()
    if period == Period.WEEK:
        first -= timedelta(days=first.weekday())
        end = first + timedelta(days=7)
    elif period == Period.MONTH:
        first = first.replace(day=1)
        end = (first + timedelta(days=32)).replace(day=1)
    else:
        end = first + timedelta(days=1)
    return _midnight(first, zone), _midnight(end, zone)


def zone_of(name: str) -> tzinfo:
    """The time zone of that name; the site's when it is empty or unknown here."""
    try:
        return ZoneInfo(name or settings.TIME_ZONE)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo(settings.TIME_ZONE)


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time.min, zone).astimezone(UTC)
