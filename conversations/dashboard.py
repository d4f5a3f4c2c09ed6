"""The admin's first page: what is still to be set up, then how the agents are doing."""

from typing import Any

from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from accounts.roles import VIEW_ALL_RUNS
from conversations import statistics
from conversations.charts import bar_chart
from conversations.models import Run
from conversations.statistics import PERIODS, Choice
from tools_admin.checklist import checklist
from tools_admin.models import Agent


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Called by the admin's index page (`UNFOLD["DASHBOARD_CALLBACK"]`)."""
    answered = Run.objects.filter(status=Run.Status.COMPLETED).exists() if request.user.is_superuser else False
    return {
        **context,
        **checklist(request, context, answered=answered),
        **(_figures(request) if request.user.has_perm(VIEW_ALL_RUNS) else {}),
    }


def _figures(request: HttpRequest) -> dict[str, Any]:
    agents = list(Agent.objects.values_list("pk", "name"))
    choice = _choice(request, {pk for pk, _name in agents})
    days = statistics.by_day(choice)
    models = statistics.by_model(choice)
    return {
        "choice": choice,
        "periods": PERIODS,
        "agents": agents,
        "model_names": sorted({choice.model, *(str(row.name) for row in models)} - {""}),
        "total": statistics.totals(days),
        "charts": [
            bar_chart(_("Runs"), days, lambda day: day.runs, number, lambda day: day.failed),
            bar_chart(_("Tokens"), days, lambda day: day.tokens, number),
            bar_chart(_("Cost"), days, lambda day: day.cost, money),
        ],
        "days": days,
        "by_model": models,
        "by_person": statistics.by_person(choice),
    }


def _choice(request: HttpRequest, agents: set[int]) -> Choice:
    """What the address asks for; what makes no sense is left out."""
    days, agent = request.GET.get("days", ""), request.GET.get("agent", "")
    return Choice(
        days=int(days) if days in {str(period) for period in PERIODS} else 30,
        agent=int(agent) if agent.isdecimal() and int(agent) in agents else None,
        model=request.GET.get("model", "").replace("\0", "")[:200],
    )


def number(value: int) -> str:
    return number_format(value, force_grouping=True)


def money(micro: int) -> str:
    """Micro-units as the amount, with cents as far as they matter."""
    digits = 2 if micro >= 1_000_000 or not micro else 4
    return number_format(round(micro / 1_000_000, digits), digits, force_grouping=True)
