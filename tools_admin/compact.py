"""Progressive disclosure: a connector with many operations appears as two tools, one to find them and one to run them.

Permission, approval and record concern the operation and not the tool in front of it: `addressed` says which it is.
Import it only where tools are called.
"""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentapp.engine import Allow, Deny, EffectClass, Tool, ToolResult
from tools_admin.connector_models import Connector
from tools_admin.connector_models import Tool as ToolRow

MOST_FOUND = 8
MAX_SCHEMA_CHARS = 3_000


@dataclass(frozen=True)
class CatalogTool(Tool):
    """Finds operations. It touches nothing, so it needs no permission of its own."""


@dataclass(frozen=True)
class ExecuteTool(Tool):
    """Runs an operation that its arguments name."""

    operations: Mapping[str, Tool] = field(default_factory=dict, kw_only=True)

    def effect_of(self, arguments: Mapping[str, Any]) -> EffectClass:
        meant = self.operations.get(str(arguments.get("operation", "")))
        return meant.effect_class if meant else EffectClass.PURE


def addressed(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and arguments of the tool that a call really is for."""
    if isinstance(tool, ExecuteTool):
        return str(arguments.get("operation", "")), dict(arguments.get("arguments") or {})
    return tool.name, dict(arguments)


def readdressed(tool: Tool, name: str, decision: Allow | Deny) -> Allow | Deny:
    """A decision about the operation, as a decision about the tool in front of it."""
    if isinstance(tool, ExecuteTool) and isinstance(decision, Allow) and decision.arguments is not None:
        return Allow({"operation": name, "arguments": decision.arguments})
    return decision


def compact(connector: Connector, operations: Sequence[tuple[Tool, ToolRow]]) -> list[Tool]:
    """Two tools in place of many."""
    by_name = {tool.name: tool for tool, _ in operations}
    prefix = connector.prefix or f"connector_{connector.pk}"
    limits = [(tool.timeout, tool.max_result_chars) for tool in by_name.values()]

    async def discover(query: str) -> ToolResult:
        return ToolResult(find(query, by_name))

    async def execute(operation: str, arguments: dict[str, Any] | None = None) -> ToolResult:
        tool, given = by_name.get(operation), arguments or {}
        if tool is None:
            near = ", ".join(difflib.get_close_matches(operation, by_name, 3))
            hint = f" Did you mean: {near}?" if near else f" Find it with {prefix}_discover."
            return ToolResult(f"There is no operation {operation[:80]!r}.{hint}", is_error=True)
        if problem := tool.argument_error(given):
            return ToolResult(f"{problem}. Its schema: {_schema(tool)}", is_error=True)
        return await tool.execute(given)

    about = f"{connector.name}: {len(by_name)} operations"
    return [
        CatalogTool(
            f"{prefix}_discover",
            f"{about}. Find operations by words and get their parameters.",
            _object({"query": {"type": "string", "description": "Words such as: list orders"}}, "query"),
            discover,
            effect_class=EffectClass.READ,
            timeout=10.0,
        ),
        ExecuteTool(
            f"{prefix}_execute",
            f"{about}. Run one that {prefix}_discover found.",
            _object({"operation": {"type": "string"}, "arguments": {"type": "object"}}, "operation"),
            execute,
            timeout=max(timeout for timeout, _ in limits) + 5,
            max_result_chars=max(chars for _, chars in limits),
            operations=by_name,
        ),
    ]


def find(query: str, tools: Mapping[str, Tool]) -> str:
    """The operations whose names and descriptions hold most of the words, with their schemas."""
    words = set(re.findall(r"\w+", query.lower()))

    def score(tool: Tool) -> int:
        name, text = tool.name.lower().replace("_", " "), tool.description.lower()
        return sum(3 * (word in name) + (word in text) for word in (w.rstrip("s") or w for w in words))

    ranked = sorted(tools.values(), key=lambda tool: (-score(tool), tool.name))
    found = [tool for tool in ranked if score(tool)]
    if not found:
        names = ", ".join(list(tools)[:60])
        return f"Nothing matches. Operations: {names}{' …' if len(tools) > 60 else ''}"
    lines = [
        f"{tool.name}: {' '.join(tool.description.split())[:300]}\n  {_schema(tool)}" for tool in found[:MOST_FOUND]
    ]
    others = ", ".join(tool.name for tool in found[MOST_FOUND : MOST_FOUND + 30])
    return "\n".join([*lines, *([f"Also: {others}"] if others else [])])


def _schema(tool: Tool) -> str:
    text = json.dumps(tool.parameters, ensure_ascii=False)
    return text if len(text) <= MAX_SCHEMA_CHARS else f"{text[:MAX_SCHEMA_CHARS]} …"


def _object(properties: dict[str, Any], required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [required],
        "properties": properties,
        "additionalProperties": False,
    }
