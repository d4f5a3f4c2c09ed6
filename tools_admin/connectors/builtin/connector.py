from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentapp.engine import EffectClass, Tool, ToolResult
from agentapp.engine.tools import as_result
from tools_admin.connectors.base import Setup, ToolError, ToolSpec, engine_tool
from tools_admin.connectors.builtin.calculator import calculate
from tools_admin.connectors.builtin.clock import current_time
from tools_admin.connectors.builtin.demo_database import query_demo_database
from tools_admin.connectors.builtin.further import FETCH_PAGE, IN_RUN
from tools_admin.connectors.person import in_run
from tools_admin.demo.dataset import describe_tables


def _one_text(name: str, description: str) -> dict[str, Any]:
    """The schema of a tool with a single text argument; small models fill in nothing more reliably.

    Keys are in the order in which PostgreSQL gives JSON back, so that prompts are the same with and without it.
    """
    return {
        "type": "object",
        "required": [name],
        "properties": {name: {"type": "string", "description": description}},
        "additionalProperties": False,
    }


BUILTIN: dict[str, tuple[ToolSpec, Callable[..., str]]] = {
    "calculator": (
        ToolSpec(
            "calculator",
            "Work out an arithmetic expression exactly, such as 17 * (4.5 + 3) or sqrt(2) or 15% of 80.",
            _one_text("expression", "Numbers, + - * / // % **, parentheses, functions such as sqrt or round."),
            effect_class=EffectClass.PURE,
            timeout=5.0,
        ),
        calculate,
    ),
    "current_time": (
        ToolSpec(
            "current_time",
            "Tell today's date, weekday and the time in a city, country or time zone.",
            _one_text(
                "place", "A city such as Munich, a country such as Japan, or a zone such as Europe/Paris or UTC."
            ),
            effect_class=EffectClass.READ,
            timeout=5.0,
        ),
        current_time,
    ),
    "query_demo_database": (
        ToolSpec(
            "query_demo_database",
            "Run one SQL SELECT (SQLite) on the demo shop's data. Tables:\n" + describe_tables(),
            _one_text("sql", "One SELECT statement."),
            effect_class=EffectClass.READ,
            timeout=10.0,
        ),
        query_demo_database,
    ),
}


class BuiltinConnector:
    """The tools of this folder. The quick ones are not free: each call runs in a thread, off the runs' loop."""

    def __init__(self, setup: Setup) -> None:
        pass

    async def check(self) -> str:
        return f"{len(builtin_specs())} tools are built in."

    async def discover(self) -> Sequence[ToolSpec]:
        return builtin_specs()

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolResult:
        if spec.name in BUILTIN:
            _, function = BUILTIN[spec.name]
            return ToolResult(await asyncio.to_thread(function, **arguments))
        if spec.name == FETCH_PAGE.name:
            from tools_admin.connectors.builtin.web_page import fetch_page

            return ToolResult(await fetch_page(**arguments))
        if spec.name in IN_RUN:
            if work := (in_run.get() or {}).get(spec.name):
                return as_result(await work(**arguments))
            raise ToolError(f"{spec.name} works only in a conversation.")
        names = ", ".join(known.name for known in builtin_specs())
        raise ToolError(f"There is no built-in tool {spec.name!r}; there are {names}.")


def builtin_specs() -> list[ToolSpec]:
    return [*(spec for spec, _ in BUILTIN.values()), FETCH_PAGE, *IN_RUN.values()]


def builtin_tools() -> list[Tool]:
    """The built-in tools that need neither a network nor a run, ready for an agent."""
    connector = BuiltinConnector(Setup())
    return [engine_tool(connector.call, spec) for spec, _ in BUILTIN.values()]
