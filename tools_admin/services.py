"""What a run asks of the configuration: which agent, which model and why, which tools."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.conf import settings

from accounts.models import User
from tools_admin.clients import ModelClients, chat_chain
from tools_admin.errors import NoModel
from tools_admin.models import Agent, Provider, Tool
from tools_admin.routing import Choice, Situation, choose
from tools_admin.seeding import seed, sync_environment

if TYPE_CHECKING:
    from agentapp import engine

__all__ = [
    "Choice",
    "ModelClients",
    "Situation",
    "chat_chain",
    "choose",
    "default_agent",
    "demo_status",
    "engine_tools",
    "model_status",
    "seed",
    "sync_environment",
    "tools_for",
]


def default_agent() -> Agent | None:
    """The agent of a new conversation: the default one if it is enabled, else the first enabled one."""
    return Agent.objects.filter(enabled=True).order_by("-is_default", "name").first()


def tools_for(agent: Agent | None, user: User) -> list[Tool]:
    """The tools this agent may use for this user now, by name; none for an agent that is gone."""
    if agent is None or not user.is_active:
        return []
    return list(agent.tools.filter(enabled=True))


def engine_tools(rows: Iterable[Tool]) -> "list[engine.Tool]":
    """Tool rows as the engine runs them: through their connector, with the administrators' decisions."""
    # The tools' libraries and the engine are the worker's; web processes do without them.
    from agentapp.engine import EffectClass
    from tools_admin.connectors import KINDS
    from tools_admin.connectors.base import ToolSpec, engine_tool

    return [
        engine_tool(
            KINDS[row.kind](),
            ToolSpec(
                row.name,
                row.description,
                row.parameters,
                effect_class=EffectClass(row.effect_class),
                needs_approval=row.needs_approval,
                timeout=row.timeout,
                max_result_chars=row.max_result_chars,
            ),
        )
        for row in rows
    ]


# What the demo model's own process writes, in the words of the page.
_DEMO_STATES = {
    "downloading": ("downloading", "The demo model is being downloaded."),
    "verifying": ("loading", "The demo model is being checked."),
    "ready": ("ready", ""),
    "failed": ("failed", "The demo model could not be started."),
    "off": ("missing", "The demo model is switched off, and no other model is connected."),
}


def model_status() -> dict[str, Any]:
    """Whether a message sent now finds a model: `state` is ready, downloading, loading, missing or failed."""
    try:
        model = choose(default_agent()).model
    except NoModel as error:
        return _status("missing", str(error))
    return demo_status() if model.provider.source == Provider.Source.DEMO else _status("ready", "")


def demo_status() -> dict[str, Any]:
    """The same for the demo model."""
    try:
        found = json.loads((settings.VAR_DIR / "demo_model" / "status.json").read_text())
    except (OSError, ValueError):
        return _status("loading", "The demo model is being started.")
    state, message = _DEMO_STATES.get(found.get("state"), ("loading", "The demo model is being started."))
    return _status(state, found.get("message") or message, found.get("done_bytes", 0), found.get("total_bytes", 0))


def _status(state: str, message: str, done: int = 0, total: int = 0) -> dict[str, Any]:
    return {"state": state, "message": message, "done_bytes": done, "total_bytes": total}
