"""Versions of agents: made when something has changed, compared, and taken back to."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db import transaction
from django.db.models import Model, OuterRef
from django.db.models.functions import JSONObject
from django.utils.translation import gettext as _

from accounts.models import User
from tools_admin.agents import Agent, Workflow
from tools_admin.connector_models import Connector, Tool
from tools_admin.kept import Kept
from tools_admin.language_models import LanguageModel
from tools_admin.route_models import Route
from tools_admin.version_models import LISTS, VALUES, AgentVersion

Definition = dict[str, Any]
_TABLES: dict[str, type[Model]] = {
    "tools": Tool,
    "connectors": Connector,
    "delegates": Agent,
    "model_id": LanguageModel,
    "route_id": Route,
    "publish_tool_id": Tool,
}
# Of the tables between: the column of the agent, and that of what it has.
_THROUGH = {"tools": ("agent", "tool"), "connectors": ("agent", "connector"), "delegates": ("from_agent", "to_agent")}
WORKFLOW = ("name", "description", "pattern", "examples", "tool", "template", "enabled")
UNCHANGED_LINES = 2  # shown around a change

_kept: "Kept[tuple[Definition, AgentVersion | None]]" = Kept(Agent, Workflow)


def publish(agent_id: int, author: User | None = None, note: str = "") -> AgentVersion:
    """The version that says what the agent is now: the newest one, or a new one if something has changed since."""
    definition, current = _kept.get(agent_id, None, lambda: _read(agent_id))
    if current is not None and current.definition == definition:
        return current
    with transaction.atomic():
        Agent.objects.select_for_update().get(pk=agent_id)
        definition, current = _read(agent_id)
        if current is not None and current.definition == definition:
            return current
        newest = AgentVersion.objects.filter(agent=agent_id).values_list("number", flat=True).first() or 0
        made = AgentVersion.objects.create(
            agent_id=agent_id, number=newest + 1, definition=definition, author=author, note=note
        )
        Agent.objects.filter(pk=agent_id).update(current=made)
    return made


def go_back(version: AgentVersion, author: User) -> AgentVersion:
    """Makes the agent what it was, as a new version. What is gone by now stays gone, and a name that another agent has
    is not taken."""
    with transaction.atomic():
        agent = Agent.objects.select_for_update().get(pk=version.agent_id)
        taken = Agent.objects.exclude(pk=agent.pk).filter(name=version.definition["name"]).exists()
        for name in VALUES:
            if not (name == "name" and taken):
                setattr(agent, name, version.definition.get(name, getattr(Agent(), name)))
        agent.model_id = _still_there(LanguageModel, [agent.model_id])[0] if agent.model_id else None
        agent.route_id = _still_there(Route, [agent.route_id])[0] if agent.route_id else None
        agent.publish_tool_id = _still_there(Tool, [agent.publish_tool_id])[0] if agent.publish_tool_id else None
        agent.save()
        agent.tools.set(_still_there(Tool, version.definition["tools"], missing=False))
        agent.connectors.set(_still_there(Connector, version.definition["connectors"], missing=False))
        agent.delegates.set(_still_there(Agent, version.definition["delegates"], missing=False))
        _restore_workflows(agent, version.definition["workflows"])
        return publish(agent.pk, author, _("Back to version %(number)d") % {"number": version.number})


def _restore_workflows(agent: Agent, kept: list[Definition]) -> None:
    agent.workflows.all().delete()
    there = _still_there(Tool, [values["tool"] for values in kept])
    for values, tool in zip(kept, there, strict=True):
        if tool is not None:
            Workflow.objects.create(agent=agent, tool_id=tool, **{k: v for k, v in values.items() if k != "tool"})


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs. `lines` are pairs of a sign (`+`, `-`, space, `…`) and a text."""

    field: str
    lines: list[tuple[str, str]]


def compare(old: AgentVersion | None, new: AgentVersion) -> list[Change]:
    """What the new version changed, field by field."""
    return compare_each([new, old])[0]


def compare_each(versions: Sequence[AgentVersion | None]) -> list[list[Change]]:
    """For each version but the last what it changed in the one after it; None there is the time before the first."""
    names = _names([version.definition for version in versions if version])
    return [_changes(old.definition if old else {}, new.definition, names) for new, old in pairwise(versions) if new]


def _changes(before: Definition, after: Definition, names: dict[str, dict[int, str]]) -> list[Change]:
    changes = []
    for name in (*VALUES, *LISTS, "workflows"):
        was, now = _text(name, before.get(name), names), _text(name, after.get(name), names)
        if was != now:
            label = str(_label(name))
            changes.append(Change(label, _lines(was.splitlines(), now.splitlines())))
    return changes


def _label(name: str) -> Any:
    if name == "workflows":
        return Workflow._meta.verbose_name_plural
    return Agent._meta.get_field(name.removesuffix("_id")).verbose_name  # type: ignore[union-attr]


def _read(agent_id: int) -> tuple[dict[str, Any], AgentVersion | None]:
    """The agent as its row says, and its newest version: one query."""
    lists: dict[str, Any] = {
        f"its_{name}": ArraySubquery(
            getattr(Agent, name).through.objects.filter(**{holder: OuterRef("pk")}).order_by(field).values(field)
        )
        for name, (holder, field) in _THROUGH.items()
    }
    workflows = Workflow.objects.filter(agent=OuterRef("pk")).order_by("name")
    lists["its_workflows"] = ArraySubquery(workflows.values(values=JSONObject(**{name: name for name in WORKFLOW})))
    agent = Agent.objects.select_related("current").annotate(**lists).get(pk=agent_id)
    definition = {name: getattr(agent, name) for name in VALUES}
    return definition | {name: vars(agent)[f"its_{name}"] for name in (*LISTS, "workflows")}, agent.current


def _still_there(table: type[Model], keys: Iterable[Any], *, missing: bool = True) -> list[Any]:
    """Those that exist; with `missing` a None for each of the others."""
    wanted = list(keys)
    found = set(table._default_manager.filter(pk__in=wanted).values_list("pk", flat=True))
    return [key if key in found else None for key in wanted if missing or key in found]


def _names(definitions: list[Definition]) -> dict[str, dict[int, str]]:
    """What the numbers in definitions are called, by field."""
    names: dict[str, dict[int, str]] = {}
    for field, table in _TABLES.items():
        values = [definition.get(field) for definition in definitions]
        keys = {key for value in values for key in (value if isinstance(value, list) else [value]) if key}
        names[field] = {row.pk: str(row) for row in table._default_manager.filter(pk__in=keys)} if keys else {}
    return names


def _text(field: str, value: Any, names: dict[str, dict[int, str]]) -> str:
    if not value:
        return ""
    if field in names:
        keys = value if isinstance(value, list) else [value]
        return "\n".join(sorted(names[field].get(key) or _("(deleted)") for key in keys))
    if field in ("examples", "workflows"):
        return json.dumps(value, indent=2, ensure_ascii=False)
    return "\n".join(value) if isinstance(value, list) else str(value)


def _lines(was: list[str], now: list[str]) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for group in SequenceMatcher(None, was, now, autojunk=False).get_grouped_opcodes(UNCHANGED_LINES):
        if lines:
            lines.append(("…", ""))
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                lines += [(" ", line) for line in was[i1:i2]]
            else:
                lines += [("-", line) for line in was[i1:i2]]
                lines += [("+", line) for line in now[j1:j2]]
    return lines
