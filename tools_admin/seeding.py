"""Rows that the product itself brings: built-in tools, a first agent, and what the environment names.

Everything here may run at any time, in several processes at once, and changes nothing when nothing is new.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone
from pydantic import SecretStr

from tools_admin.defaults import save_as_default
from tools_admin.demo.agent import MODEL, PRESET
from tools_admin.models import Agent, Connector, LanguageModel, Provider, Route, Tool

logger = logging.getLogger(__name__)

# Roles that the product itself asks for. Without a model their route changes nothing.
ROLES = {
    "general": "Answers where an agent names neither a model nor a route.",
    "fast": "Small jobs beside the answer: titles, summaries, choosing tools.",
    "reasoning": "Hard questions: verdicts on drafts, replanning.",
    "planner": "Writes the plans of planned modes.",
    "embedding": "Turns texts into vectors for knowledge.",
}

# Any number that nothing else in this database locks.
_LOCK = 0x6167656E74


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Web and worker processes start together; the second finds the work of the first done."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        yield


def seed() -> None:
    """Built-in tools as the code defines them (whether one is enabled stays), the product's roles, and a first agent
    if there is none."""
    with _one_at_a_time():
        _seed_tools()
        for name, description in ROLES.items():
            Route.objects.get_or_create(name=name, defaults={"description": description})
        if not Agent.objects.exists():
            _seed_agent()


def _seed_tools() -> None:
    from tools_admin.connectors.builtin.connector import builtin_specs

    builtin, _ = Connector.objects.get_or_create(kind="builtin", defaults={"name": "Built in"})
    specs = {spec.name: spec for spec in builtin_specs()}
    for name, spec in specs.items():
        definition = {
            "key": name,
            "description": spec.description,
            "parameters": spec.parameters,
            "effect_class": spec.effect_class.value,
        }
        limits = {"timeout": spec.timeout, "max_result_chars": spec.max_result_chars}
        tool = Tool.objects.filter(connector=builtin, name=name).first()
        if tool is None:
            Tool.objects.create(connector=builtin, name=name, **definition, **limits)
        else:
            _change(tool, definition)
    builtin.tools.exclude(name__in=specs).delete()


def _seed_agent() -> None:
    agent = Agent.objects.create(**PRESET, is_default=True)
    from tools_admin.connectors.builtin.connector import BUILTIN

    # The few that a small model can tell apart; the others are an administrator's to add.
    agent.tools.set(Tool.objects.filter(connector__kind="builtin", name__in=BUILTIN))


def sync_environment() -> None:
    """Providers that the environment names become locked rows; those it no longer names are disabled.

    An endpoint of one's own (`OPENAI_BASE_URL` …) takes the place of the demo model. Neither displaces a default
    model that a person chose, as long as that one can be used.
    """
    wanted = _named_source()
    with _one_at_a_time():
        for source in (Provider.Source.ENVIRONMENT, Provider.Source.DEMO):
            if source != wanted:
                _retire(source)
        model = None
        if wanted == Provider.Source.ENVIRONMENT:
            model = _sync_endpoint()
        elif wanted == Provider.Source.DEMO:
            model = _sync_demo()
        if model is not None and not LanguageModel.objects.usable().filter(is_default=True).exists():
            save_as_default(model)


def _named_source() -> Provider.Source | None:
    if settings.OPENAI_BASE_URL:
        return Provider.Source.ENVIRONMENT
    if settings.DEMO_MODEL_URL and settings.DEMO_MODEL != "none":
        return Provider.Source.DEMO
    return None


def _sync_endpoint() -> LanguageModel | None:
    """What the model can do stays an administrator's: the environment does not say it."""
    provider = _sync_provider(
        Provider.Source.ENVIRONMENT, "From the environment", settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY
    )
    provider.models.exclude(name=settings.OPENAI_MODEL).filter(enabled=True).update(enabled=False, is_default=False)
    if not settings.OPENAI_MODEL:
        logger.warning("OPENAI_BASE_URL names an endpoint but OPENAI_MODEL no model: set it too.")
        return None
    model, _ = LanguageModel.objects.get_or_create(provider=provider, name=settings.OPENAI_MODEL)
    _change(model, {"enabled": True})
    return model


def _sync_demo() -> LanguageModel:
    provider = _sync_provider(
        Provider.Source.DEMO, "Demo model on this machine", settings.DEMO_MODEL_URL, settings.DEMO_MODEL_KEY
    )
    model, _ = LanguageModel.objects.get_or_create(provider=provider, name="demo")
    weights = Path(settings.DEMO_MODEL).name or "Qwen2.5-Coder 0.5B"
    _change(model, {"label": f"Demo model ({weights})", "enabled": True, **MODEL})
    return model


def _sync_provider(source: Provider.Source, name: str, base_url: str, key: str) -> Provider:
    values = {"base_url": base_url, "api_key": SecretStr(key), "enabled": True}
    provider, _ = Provider.objects.get_or_create(source=source, defaults={"name": name, **values})
    _change(provider, values)
    return provider


def _retire(source: Provider.Source) -> None:
    """Disabled, not deleted: agents that name its models find them again when the environment does."""
    LanguageModel.objects.filter(provider__source=source, is_default=True).update(is_default=False)
    Provider.objects.filter(source=source, enabled=True).update(enabled=False, updated_at=timezone.now())


def _change(row: Model, values: dict[str, Any]) -> None:
    """Writes only what differs: a provider's clients are made anew when its row changes."""
    if any(getattr(row, name) != value for name, value in values.items()):
        for name, value in values.items():
            setattr(row, name, value)
        row.save()
