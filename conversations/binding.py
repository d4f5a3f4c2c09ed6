"""Which models a run is bound to: chosen once with the reason, kept on the run, and followed through a fallback."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.db.models import Sum
from django.db.models.functions import Length
from django.utils.translation import gettext as _

from agentapp.database import prepared_cursor
from agentapp.engine import ChatModel, ModelError, ModelUnavailable
from conversations.allotments import budgets_of
from conversations.cleaning import to_json
from conversations.completions.wire import has_images
from conversations.models import Asked, Message, Run
from tools_admin import services as configuration
from tools_admin.clients import ModelClients
from tools_admin.models import LanguageModel, Provider

CHARS_PER_TOKEN = 4
_KEEP = "UPDATE conversations_run SET model = %s::jsonb, agent_version_id = %s WHERE id = %s AND epoch = %s"


def bound_models(run: Run, clients: ModelClients, *, images: bool = False) -> list[LanguageModel]:
    """The models of the run's beginning that are still there, the one in use first; else a new choice, kept with its
    reason. Raises NoModel, NothingFits, and ModelUnavailable while the demo model is being loaded."""
    models = _kept(run) or _chosen(run, clients, images)
    if models[0].provider.source == Provider.Source.DEMO:
        status = configuration.demo_status()
        if status["state"] in ("downloading", "loading"):
            raise ModelUnavailable(status["message"], code="loading")
    return models


def _kept(run: Run) -> list[LanguageModel]:
    if not run.model:
        return []
    order = [run.model["id"], *run.model.get("chain", ())]
    usable = LanguageModel.objects.usable().visible_to(run.user).filter(pk__in=order)
    return sorted(usable, key=lambda row: order.index(row.pk))


def _chosen(run: Run, clients: ModelClients, images: bool) -> list[LanguageModel]:
    asked: Asked | None = getattr(run, "asked", None)
    situation = configuration.Situation(
        tools=bool(run.agent_id or (asked and asked.call.get("tools"))),
        images=images or bool(asked and has_images(asked)),
        calls=bool(asked and asked.call.get("tools")),
        tokens=cache(lambda: _size(run)),
        budget_left=cache(lambda: _budget_left(run)),
        paused=clients.health.paused,
    )
    choice = configuration.choose(run.agent, run.user, situation, route=asked.route if asked else "")
    if asked:
        configuration.check_fits(choice, situation, asked.route)
    run.model = {
        **_named(choice.model),
        "route": choice.route,
        "reason": choice.reason,
        "chain": [row.pk for row in choice.models],
    }
    with prepared_cursor() as cursor:
        cursor.execute(_KEEP, [to_json(run.model).decode(), run.agent_version_id, run.id, run.epoch])
    return list(choice.models)


def note_fallback(run: Run, now: ChatModel, failures: Sequence[ModelError]) -> dict[str, Any]:
    """Another model has taken over: from here on it is the run's (synchronous). Gives what pages are told."""
    row: LanguageModel = now.row  # type: ignore[attr-defined]  # the worker's models are rows
    why = "; ".join(dict.fromkeys(str(failure)[:200] for failure in failures))
    reason = _("stands in for %(model)s: %(why)s") % {"model": run.model["label"], "why": why}
    told = {"from": run.model["label"], "to": str(row), "reason": why}
    run.model = {**run.model, **_named(row), "reason": reason, "fallbacks": [*run.model.get("fallbacks", ()), told]}
    Run.objects.filter(id=run.id, epoch=run.epoch).update(model=run.model)
    return told


def _named(row: LanguageModel) -> dict[str, Any]:
    return {"id": row.pk, "name": row.name, "label": str(row), "provider": row.provider.name}


def _size(run: Run) -> int:
    """The conversation in estimated tokens."""
    if asked := getattr(run, "asked", None):
        return len(str(asked.messages)) // CHARS_PER_TOKEN
    messages = Message.objects.filter(conversation=run.conversation_id)
    return (messages.aggregate(chars=Sum(Length("content")))["chars"] or 0) // CHARS_PER_TOKEN


def _budget_left(run: Run) -> int | None:
    """Per cent of the tightest budget that pays for the run; None when none does."""
    return min((100 * budget.left // max(1, budget.limit) for budget in budgets_of(run)), default=None)
