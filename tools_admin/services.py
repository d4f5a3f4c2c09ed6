"""What a run asks of the configuration: which agent, which model and why, which tools."""

import json
from typing import Any

from django.conf import settings

from accounts.models import User
from tools_admin.clients import ModelClients, chat_chain
from tools_admin.errors import NoModel
from tools_admin.kept import Kept, at_one_moment
from tools_admin.models import Agent, Provider
from tools_admin.routing import Choice, Situation, check_fits, choose, choose_for_role
from tools_admin.seeding import seed, sync_environment
from tools_admin.toolbox import engine_tools, tools_for
from tools_admin.versions import publish

__all__ = [
    "Choice",
    "ModelClients",
    "Situation",
    "agent_for",
    "agents_for",
    "at_one_moment",
    "chat_chain",
    "check_fits",
    "choose",
    "choose_for_role",
    "default_agent",
    "demo_status",
    "engine_tools",
    "helpers_of",
    "model_status",
    "publish",
    "seed",
    "sync_environment",
    "tools_for",
]


_agents: Kept[list[Agent]] = Kept(Agent)


def default_agent() -> Agent | None:
    """The agent that most conversations begin with: the default one if it is enabled, else the first enabled one."""
    return Agent.objects.filter(enabled=True).default_first().first()


def agent_for(user: User, wanted: int | None = None) -> Agent | None:
    """The wanted agent if this person may use it, else the first one that they may use, the default one first."""
    theirs = agents_for(user)
    return next((agent for agent in theirs if agent.pk == wanted), theirs[0] if theirs else None)


def agents_for(user: User) -> list[Agent]:
    """The agents that this person may use, the default one first."""
    return list(_agents.get(None, user, lambda: list(Agent.objects.visible_to(user).default_first())))


def helpers_of(agent: Agent, user: User) -> list[Agent]:
    """The agents that it may hand parts of this person's work to."""
    key = (agent.pk, agent.then and agent.then.pk)
    return list(_agents.get(key, user, lambda: list(agent.helpers.visible_to(user))))


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
