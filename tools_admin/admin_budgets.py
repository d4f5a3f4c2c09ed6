"""Budgets of agents in the admin."""

from django.contrib import admin

from accounts.admin.budgets import BudgetAdminBase, BudgetForm
from tools_admin.models import AgentBudget


class AgentBudgetForm(BudgetForm):
    class Meta:
        model = AgentBudget
        fields = ("agent", "unit", "period", "warn_percent")


@admin.register(AgentBudget)
class AgentBudgetAdmin(BudgetAdminBase):
    form = AgentBudgetForm
    list_display = ("agent", *BudgetAdminBase.list_display[1:])
    settled = ("agent", "unit", "period")
    list_select_related = ("agent",)
    search_fields = ("agent__name",)
    autocomplete_fields = ("agent",)
