"""Checks of providers and models: asked for in the admin, made by a worker, kept with the row."""

import asyncio
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agentapp.celery import hint
from tools_admin.defaults import save_as_default
from tools_admin.errors import NoModel
from tools_admin.health import forget
from tools_admin.models import LanguageModel, Provider

CHECK_SECONDS = 600
MEASURED = ("tool_call", "parallel_calls", "json_mode", "json_schema", "streaming", "stream_usage", "vision")


def ask_for_check(row: Provider | LanguageModel) -> None:
    """Marks the row as being checked and hands it to a worker, after commit."""
    _keep(row, {**row.last_check, "state": "running", "asked_at": timezone.now().isoformat()})
    transaction.on_commit(lambda: _send(row))


def _send(row: Provider | LanguageModel) -> None:
    name = "check_provider" if isinstance(row, Provider) else "check_model"
    if not hint(f"tools_admin.tasks.{name}", row.pk):
        text = _("The broker does not answer, so no worker can check it. Try again when it is back.")
        _keep(row, {"state": "done", "error": text, "seconds": 0.0, "at": timezone.now().isoformat()})


def check_provider(provider_id: int) -> None:
    """In a worker: lists the endpoint's models."""
    if (provider := Provider.objects.filter(pk=provider_id).first()) is not None:
        from tools_admin.checking import list_models

        _keep(provider, _run(list_models, provider))


def check_model(model_id: int) -> None:
    """In a worker: measures a model and enters what it can do. What the product itself sets stays as it is."""
    row = LanguageModel.objects.select_related("provider").filter(pk=model_id).first()
    if row is None:
        return
    from tools_admin.checking import check_model as measure

    result = _run(measure, row)
    if "error" not in result:
        forget(row.pk)
        if row.provider.source != Provider.Source.DEMO:
            enter(row, result)
    _keep(row, result)


def enter(row: LanguageModel, result: dict[str, Any]) -> None:
    """Takes what was measured into the row. What could not be measured stays."""
    found = {name: result["abilities"].get(name, {}).get("ok") for name in MEASURED}
    changes: dict[str, Any] = {name: ok for name, ok in found.items() if ok is not None}
    changes["quirks"] = {**row.quirks, **result.get("learnt", {})}
    LanguageModel.objects.filter(pk=row.pk).update(**changes)


def add_models(provider: Provider, names: Iterable[str]) -> list[LanguageModel]:
    """Models of an endpoint, to be checked at once. The first one answers by default where only the demo model did."""
    sizes = {found["id"]: found["context_size"] for found in provider.last_check.get("models", ())}
    added = []
    for name in names:
        kind = LanguageModel.Kind.EMBEDDING if "embed" in name.lower() else LanguageModel.Kind.CHAT
        values: dict[str, Any] = {"kind": kind}
        if sizes.get(name):
            values["context_size"] = sizes[name]
            values["max_output_tokens"] = min(4_096, sizes[name] // 4)
        model, is_new = LanguageModel.objects.get_or_create(provider=provider, name=name, defaults=values)
        if is_new:
            added.append(model)
    chat = next((model for model in added if model.kind == LanguageModel.Kind.CHAT), None)
    default = LanguageModel.objects.usable().filter(is_default=True).exclude(provider__source=Provider.Source.DEMO)
    if chat is not None and provider.enabled and not default.exists():
        save_as_default(chat)
    for model in added:
        ask_for_check(model)
    return added


def _run(work: Any, row: Provider | LanguageModel) -> dict[str, Any]:
    from tools_admin.clients import ModelClients

    async def bounded() -> dict[str, Any]:
        clients = ModelClients()
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                return dict(await work(row, clients))
        except NoModel as error:
            return {"error": str(error)}
        except TimeoutError:
            return {"error": f"The check was given up after {CHECK_SECONDS // 60} minutes."}
        finally:
            await clients.aclose()

    return {**asyncio.run(bounded()), "state": "done", "at": timezone.now().isoformat()}


def _keep(row: Provider | LanguageModel, result: dict[str, Any]) -> None:
    """Without touching `updated_at`: a provider's clients stay."""
    row.last_check = result
    type(row)._default_manager.filter(pk=row.pk).update(last_check=result)
