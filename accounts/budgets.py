"""What a user, a group or an API key may spend in a period. Agents' budgets are in `tools_admin.models`.

A run draws an allotment before it spends and gives the rest back (`conversations.allotments`), so `used` is never less
than what was spent, and never more by longer than a run is at work.
"""

from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, ClassVar, Self

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.db.models import Q, TextChoices
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.money import shown_money, shown_tokens
from accounts.periods import Period, bounds, zone_of
from agentapp.database import prepared_cursor
from agentapp.plain_rows import Columns

if TYPE_CHECKING:
    from accounts.models import User


class BudgetQuerySet(models.QuerySet["Budget"]):
    def visible_to(self, user: "User") -> Self:
        """One's own and those of one's groups."""
        if not user.is_active:
            return self.none()
        mine = Q(user=user.pk) | Q(group__user=user.pk) | Q(api_key__user=user.pk)
        return self.filter(pk__in=self.model.objects.filter(mine).values("pk")).select_related(
            "user", "group", "api_key__user"
        )

    def of_person(self, user: int) -> Self:
        """Those that pay for what somebody does, in runs or besides: their own and their groups'."""
        return self.filter(pk__in=self.model.objects.filter(Q(user=user) | Q(group__user=user)).values("pk"))

    @transaction.atomic
    def charge(self, cost: int, tokens: int) -> "list[Budget]":
        """Counts on each of these what was spent without having been set aside; returns them."""
        amounts = {Budget.Unit.COST: cost, Budget.Unit.TOKENS: tokens}
        budgets = list(self.select_for_update(of=("self",)).order_by("id"))
        for budget in budgets:
            budget.begin_period(timezone.now())
            budget.used += amounts[Budget.Unit(budget.unit)]
            budget.save(update_fields=["used", "period_start", "warned"])
        return budgets


class Budget(models.Model):
    """One owner, one period, one unit. A group's budget is one purse for all its members."""

    class Unit(TextChoices):
        COST = "cost", gettext_lazy("Money")
        TOKENS = "tokens", gettext_lazy("Tokens")

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="budget",
        verbose_name=gettext_lazy("user"),
        help_text=gettext_lazy("Of all their runs. Either this, or a group, or an API key."),
    )
    group = models.OneToOneField(
        "auth.Group",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="budget",
        verbose_name=gettext_lazy("group"),
        help_text=gettext_lazy("One purse for all members."),
    )
    api_key = models.OneToOneField(
        "accounts.ApiKey",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="budget",
        verbose_name=gettext_lazy("API key"),
        help_text=gettext_lazy("Of the runs that a program starts with it."),
    )
    unit = models.CharField(
        gettext_lazy("counts"),
        max_length=6,
        choices=Unit,
        default=Unit.COST,
        help_text=gettext_lazy("Money needs prices of the models; tokens are counted in and out."),
    )
    period = models.CharField(
        gettext_lazy("period"),
        max_length=5,
        choices=Period,
        default=Period.MONTH,
        help_text=gettext_lazy("Begins anew at midnight in the owner's time zone, weeks on Monday."),
    )
    limit = models.PositiveBigIntegerField(
        gettext_lazy("limit"), help_text=gettext_lazy("Micro-units of the currency, or tokens, in each period.")
    )
    warn_percent = models.PositiveSmallIntegerField(
        gettext_lazy("warn at"),
        default=80,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=gettext_lazy("Per cent of the limit at which people are told, once in a period."),
    )
    used = models.PositiveBigIntegerField(default=0, editable=False)
    period_start = models.DateTimeField(default=timezone.now, editable=False)
    warned = models.BooleanField(default=False, editable=False)

    objects: ClassVar[BudgetQuerySet] = BudgetQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(user=None, group=None)
                | Q(user=None, api_key=None)
                | Q(group=None, api_key=None),  # none of them: an agent's
                name="budget_has_one_owner",
                violation_error_message=gettext_lazy("A budget has one owner: a user, a group or an API key."),
            ),
        ]

    def __str__(self) -> str:
        return _("Budget of %(owner)s") % {"owner": self.owner}

    @property
    def owner(self) -> str:
        return str(self.user or self.group or self.api_key or "")

    @property
    def zone(self) -> tzinfo:
        person = self.user or (self.api_key.user if self.api_key else None)
        return zone_of(person.time_zone if person else "")

    def bounds(self, now: datetime) -> tuple[datetime, datetime]:
        return bounds(self.period, now, self.zone)

    def begin_period(self, now: datetime) -> None:
        """Starts at nothing if a new period has begun; the caller holds the row and saves it."""
        start, _end = self.bounds(now)
        if self.period_start < start:
            self.period_start, self.used, self.warned = start, 0, False

    def used_now(self, now: datetime | None = None) -> int:
        """Of the present period, whether a run has touched the row in it or not."""
        start, _end = self.bounds(now or timezone.now())
        return self.used if self.period_start >= start else 0

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used_now())

    @property
    def ends(self) -> datetime:
        """When it begins anew."""
        return self.bounds(timezone.now())[1]

    @property
    def is_low(self) -> bool:
        """Whether so much is used that people are warned."""
        return self.used_now() * 100 >= self.limit * self.warn_percent

    def shown(self, amount: int) -> str:
        return shown_money(amount) if self.unit == self.Unit.COST else shown_tokens(amount)


def tightest(user: "User") -> Budget | None:
    """Of the budgets that pay for what a person does in the pages, the one of which the least is left. One query."""
    budgets = [budget for budget in Budget.objects.visible_to(user) if budget.api_key_id is None]
    return min(budgets, key=lambda budget: budget.left / max(1, budget.limit), default=None)


_BUDGET = Columns(Budget)
_COLUMNS = _BUDGET.of("budget")
# A row for each group, with its budget if it has one, and one for each other budget.
_PURSES = f"""
SELECT crew.name AS group_name, NULL AS key_name, NULL AS key_prefix, {_COLUMNS}
FROM accounts_user_groups member JOIN auth_group crew ON crew.id = member.group_id
LEFT JOIN accounts_budget budget ON budget.group_id = crew.id
WHERE member.user_id = %(user)s
UNION ALL
SELECT NULL, key.name, key.prefix, {_COLUMNS}
FROM accounts_budget budget LEFT JOIN accounts_apikey key ON key.id = budget.api_key_id
WHERE budget.user_id = %(user)s OR key.id = %(key)s
ORDER BY group_name, id
"""  # noqa: S608 - nothing in it comes from outside


def groups_and_budgets(user: "User") -> tuple[list[str], list[Budget]]:
    """Names of a person's groups, and all budgets that pay for what they do, in pages or by the key they came in by.
    One query, in plain words: Django takes ten times as long to put it together as PostgreSQL to answer it."""
    from accounts.models import ApiKey

    with prepared_cursor() as cursor:
        cursor.execute(_PURSES, {"user": user.pk, "key": user.by_key_id})
        rows = cursor.fetchall()
    budgets = []
    for group_name, key_name, key_prefix, *columns in rows:
        if columns[0] is None:
            continue
        budget = _BUDGET.row(iter(columns))
        if budget.group_id:
            budget.group = Group(id=budget.group_id, name=group_name)
        elif budget.api_key_id:
            budget.api_key = ApiKey(id=budget.api_key_id, user=user, name=key_name, prefix=key_prefix)
        else:
            budget.user = user
        budgets.append(budget)
    return [row[0] for row in rows if row[0] is not None], sorted(budgets, key=lambda budget: budget.pk)
