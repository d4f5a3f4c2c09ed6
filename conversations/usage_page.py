"""The page that says what one has used and what is left."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.budgets import Budget
from conversations.usage import usage
from conversations.views import sidebar, signed_in

PERIODS = (7, 30, 90)


@require_safe
@login_required
def usage_page(request: HttpRequest) -> HttpResponse:
    """One's own runs only: those of others are the administrators' business, in the admin."""
    user = signed_in(request)
    asked = request.GET.get("days", "")
    days = int(asked) if asked in map(str, PERIODS) else 30
    until = timezone.localdate()
    since = until - timedelta(days=days - 1)
    by_day = usage(user, "day", since, until, own=True)
    context: dict[str, Any] = {
        "sidebar": sidebar(request),
        "budgets": list(Budget.objects.visible_to(user)),
        "periods": PERIODS,
        "days": days,
        "total": sum(row.cost for row in by_day),
        "tokens": sum(row.tokens for row in by_day),
        "calls": sum(row.calls for row in by_day),
        "estimated": any(row.estimated for row in by_day),
        "tables": [
            (_("Model"), usage(user, "model", since, until, own=True)),
            (_("Tool"), usage(user, "tool", since, until, own=True)),
            (_("Day"), by_day[::-1]),
        ],
    }
    return render(request, "chat/usage.html", context)
