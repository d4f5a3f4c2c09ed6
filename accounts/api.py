"""REST: the caller."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from ninja import Router

from accounts.auth import ApiAuth, caller
from accounts.budgets import Budget, groups_and_budgets
from accounts.schemas import MeOut

router = Router(tags=["You"])


@router.get(
    "/me",
    response=MeOut,
    auth=ApiAuth(any_key=True),
    summary="The caller, their groups, and what is left of their budgets",
)
def me(request: HttpRequest) -> dict[str, Any]:
    """With a key: its own budget, and none of other keys."""
    user = caller(request)
    groups, budgets = groups_and_budgets(user)
    return {
        "id": user.pk,
        "username": user.get_username(),
        "name": user.get_full_name(),
        "groups": groups,
        "currency": settings.CURRENCY,
        "budgets": [_shown(budget) for budget in budgets],
    }


def _shown(budget: Budget) -> dict[str, Any]:
    now = timezone.now()
    return {
        "owner": budget.owner,
        "of": "user" if budget.user_id else "group" if budget.group_id else "api_key",
        "unit": budget.unit,
        "period": budget.period,
        "limit": budget.limit,
        "used": budget.used_now(now),
        "left": budget.left,
        "low": budget.is_low,
        "resets_at": budget.bounds(now)[1],
    }
