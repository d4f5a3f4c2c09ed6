"""Amounts as people read them."""

from django import template
from django.conf import settings

from accounts.budgets import Budget
from accounts.money import shown_money

register = template.Library()


@register.simple_tag
def currency() -> str:
    return str(settings.CURRENCY)


@register.filter
def money(micro: int) -> str:
    return shown_money(micro)


@register.filter
def left_of(budget: Budget) -> str:
    """What is left, in the budget's unit."""
    return budget.shown(budget.left)


@register.filter
def used_of(budget: Budget) -> str:
    return budget.shown(budget.used_now())


@register.filter
def limit_of(budget: Budget) -> str:
    return budget.shown(budget.limit)


@register.filter
def used_percent(budget: Budget) -> int:
    """0 to 100, for a bar."""
    return min(100, budget.used_now() * 100 // max(1, budget.limit))
