"""Budgets in the admin: whose, how much, and what of it is used."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import lazystr
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminDecimalFieldWidget

from accounts.models import Budget
from accounts.money import MICRO
from accounts.money_field import MOST, as_units


class BudgetForm(forms.ModelForm):  # type: ignore[type-arg]
    """The limit as people write it: units of the currency, or tokens."""

    amount = forms.DecimalField(
        label=_("Limit"),
        min_value=0,
        max_value=MOST * 1_000,
        decimal_places=6,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text=lazystr(_("In each period: %(currency)s, or tokens.") % {"currency": settings.CURRENCY}),
    )

    class Meta:
        model = Budget
        fields = ("user", "group", "api_key", "unit", "period", "warn_percent")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            limit, in_money = self.instance.limit, self.instance.unit == Budget.Unit.COST
            self.initial["amount"] = as_units(limit) if in_money else str(limit)

    def clean(self) -> Any:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        owners = [name for name in ("user", "group", "api_key") if name in self.fields]
        if owners and not self.instance.pk and sum(given.get(name) is not None for name in owners) != 1:
            raise forms.ValidationError(_("Choose whose budget it is: one user, one group or one API key."))
        amount: Decimal | None = given.get("amount")
        if amount is not None:
            unit = given.get("unit") or self.instance.unit
            if unit == Budget.Unit.TOKENS and amount != int(amount):
                self.add_error("amount", _("Tokens are whole numbers."))
            self.instance.limit = int(amount * MICRO) if unit == Budget.Unit.COST else int(amount)
        return given


class BudgetAdminBase(ModelAdmin):  # type: ignore[misc]
    """What is counted, and over which period, is settled when a budget is made: its sum would mean nothing else."""

    form = BudgetForm
    list_display = ("owner", "limit_shown", "period", "bar", "left_shown", "begins_anew")
    list_filter = ("unit", "period")
    settled: Sequence[str] = ("unit", "period")
    figures = ("used_shown", "left_shown", "begins_anew")

    def get_fieldsets(self, request: HttpRequest, obj: Budget | None = None) -> Any:
        first = (None, {"fields": (*self.settled, "amount", "warn_percent")})
        return [first] if obj is None else [first, (_("Now"), {"fields": self.figures})]

    def get_readonly_fields(self, request: HttpRequest, obj: Budget | None = None) -> Sequence[str]:
        return self.figures if obj is None else (*self.settled, *self.figures)

    @admin.display(description=_("limit"), ordering="limit")
    def limit_shown(self, budget: Budget) -> str:
        return budget.shown(budget.limit)

    @admin.display(description=_("used"))
    def used_shown(self, budget: Budget) -> str:
        return f"{budget.shown(budget.used_now())} ({_percent(budget)} %)"

    @admin.display(description=_("used"), ordering="used")
    def bar(self, budget: Budget) -> str:
        percent = _percent(budget)
        return format_html(
            '<meter min="0" max="100" low="50" high="{}" optimum="0" value="{}"></meter>&nbsp;{}&nbsp;%',
            budget.warn_percent,
            min(100, percent),
            percent,
        )

    @admin.display(description=_("left"))
    def left_shown(self, budget: Budget) -> str:
        return budget.shown(budget.left)

    @admin.display(description=_("begins anew"))
    def begins_anew(self, budget: Budget) -> str:
        return date_format(timezone.localtime(budget.ends), "SHORT_DATETIME_FORMAT")


def _percent(budget: Budget) -> int:
    return budget.used_now() * 100 // max(1, budget.limit)


@admin.register(Budget)
class BudgetAdmin(BudgetAdminBase):
    """Of people, groups and keys. Agents' budgets have a page of their own, beside the agents."""

    settled = ("user", "group", "api_key", "unit", "period")
    list_select_related = ("user", "group", "api_key__user")
    search_fields = ("user__username", "group__name", "api_key__name")
    autocomplete_fields = ("user", "group", "api_key")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Budget]:
        rows: QuerySet[Budget] = super().get_queryset(request)
        return rows.exclude(Q(user=None) & Q(group=None) & Q(api_key=None))

    @admin.display(description=_("of"))
    def owner(self, budget: Budget) -> str:
        return budget.owner
