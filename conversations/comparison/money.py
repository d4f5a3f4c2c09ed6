"""What a comparison costs is paid by the budgets of whoever started it and of its agent: each attempt when it ends.

An attempt may take no more than what is left when it begins, so budgets are overdrawn at most by what others spend
meanwhile.
"""

from typing import NamedTuple

from django.db.models import Q
from django.utils import timezone

from accounts.models import Budget, User
from conversations.allotments import exhausted_text
from conversations.models import Comparison, ComparisonAttempt
from tools_admin.models import Agent, AgentBudget


class Room(NamedTuple):
    """What is left, None where no budget counts that unit; `refusal` is set when nothing is."""

    cost: int | None
    tokens: int | None
    refusal: str = ""


def payers_of(user: User, agent: Agent | None) -> list[Budget]:
    agents = AgentBudget.objects.filter(agent=agent).values("pk") if agent else []
    payers = Q(user=user.pk) | Q(group__user=user.pk) | Q(id__in=agents)
    return list(Budget.objects.filter(id__in=Budget.objects.filter(payers).values("id")))


def room(comparison: Comparison) -> Room:
    left: dict[str, int | None] = {"cost": None, "tokens": None}
    for budget in comparison.payers.select_related("user", "group", "api_key__user"):
        known = left[budget.unit]
        left[budget.unit] = budget.left if known is None else min(known, budget.left)
        if not budget.left:
            return Room(0, 0, exhausted_text(budget, timezone.now()))
    return Room(left["cost"], left["tokens"])


def charge(comparison: Comparison, attempt: ComparisonAttempt) -> None:
    """Counts what an attempt took. Inside the transaction that ends it."""
    cost = attempt.cost + attempt.judge_cost
    tokens = attempt.input_tokens + attempt.output_tokens + attempt.judge_tokens
    if cost or tokens:
        comparison.payers.all().charge(cost, tokens)
