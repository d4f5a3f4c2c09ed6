"""How long a connection may stay open: as long as the session or key that opened it, and its user, are good."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import ApiKey, User


@dataclass(frozen=True, slots=True)
class SignIn:
    """A user, and the session or key by which they came in."""

    user: int
    session: str = ""
    key: int = 0


def ended(sign_ins: Iterable[SignIn]) -> set[SignIn]:
    """Those that let nobody in any more. One query each for users, sessions and keys, however many there are."""
    known = set(sign_ins)
    users = _existing(User.objects.filter(is_active=True), "pk", {s.user for s in known})
    sessions = _existing(
        Session.objects.filter(expire_date__gt=timezone.now()), "session_key", {s.session for s in known if s.session}
    )
    keys = _existing(ApiKey.objects.usable(), "pk", {s.key for s in known if s.key})
    good = {
        s
        for s in known
        if s.user in users and (not s.session or s.session in sessions) and (not s.key or s.key in keys)
    }
    return known - good


def _existing(rows: QuerySet[Any], field: str, wanted: set[Any]) -> set[Any]:
    return set(rows.filter(**{f"{field}__in": wanted}).values_list(field, flat=True)) if wanted else set()


_BROWSERS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "Chrome": "Chrome", "Safari": "Safari"}
_SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS": "macOS",
    "Linux": "Linux",
}


def browser_of(user_agent: str) -> str:
    """What a browser calls itself, as people would say it; empty when it is none that we know."""
    browser = next((name for mark, name in _BROWSERS.items() if f"{mark}/" in user_agent), "")
    system = next((name for mark, name in _SYSTEMS.items() if mark in user_agent), "")
    return " · ".join(filter(None, (browser, system)))
