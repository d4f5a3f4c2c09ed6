"""The tools of an agent for a person, from rows to what the engine runs."""

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from accounts.models import User
from tools_admin.kept import Kept
from tools_admin.models import Agent, Connector, Tool

if TYPE_CHECKING:
    from agentapp import engine
    from tools_admin.connectors.base import ToolSpec

# A connector with more tools than this shows them by search (`compact.py`).
MOST_SHOWN = 20

_kept: Kept[list[Tool]] = Kept(Tool, Connector, Agent)


def tools_for(agent: Agent | None, user: User) -> list[Tool]:
    """The tools this agent may use for this user now, by name; none for an agent that is gone."""
    if agent is None:
        return []

    def read() -> list[Tool]:
        return list(Tool.objects.visible_to(user).filter(agent.given).select_related("connector").order_by("name"))

    return list(_kept.get((agent.pk, agent.then and agent.then.pk), user, read))


def engine_tools(rows: Iterable[Tool], user: User) -> "list[engine.Tool]":
    """Tool rows (with their connectors) as the engine runs them: through their connector, with admins' decisions."""
    from tools_admin.compact import compact

    made: list[engine.Tool] = []
    for connector, group in groupby(sorted(rows, key=lambda row: row.connector_id), key=lambda row: row.connector):
        of_connector = list(group)
        hidden = [row for row in of_connector if not row.direct]
        if len(hidden) <= MOST_SHOWN:
            hidden = []
        made += [engine_tool_of(row, user) for row in of_connector if row not in hidden]
        if hidden:
            made += compact(connector, [(engine_tool_of(row, user), row) for row in hidden])
    return sorted(made, key=lambda tool: tool.name)


def engine_tool_of(row: Tool, user: User, sent: list[str] | None = None) -> "engine.Tool":
    """One row (with its connector) as the engine runs it; `sent` collects what the connector sends, masked."""
    # The tools' libraries and the engine are the worker's; web processes do without them.
    from tools_admin.calls import Calls
    from tools_admin.connectors.base import Setup, engine_tool
    from tools_admin.connectors.kinds import KINDS

    if row.connector.kind == "builtin":
        call = KINDS["builtin"].load()(Setup()).call
    else:
        call = Calls(row.connector_id, user.pk, sent).call
    return engine_tool(call, spec_of(row))


def spec_of(row: Tool) -> "ToolSpec":
    """A row as its connector knows it."""
    from agentapp.engine import EffectClass
    from tools_admin.connectors.base import ToolSpec

    return ToolSpec(
        row.name,
        row.description,
        row.parameters,
        effect_class=EffectClass(row.effect_class),
        needs_approval=row.asks_first,
        timeout=row.timeout,
        max_result_chars=row.max_result_chars,
        key=row.key,
        definition=row.definition,
    )
