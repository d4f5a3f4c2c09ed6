"""What a server offers, as tools of ours."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import mcp_types
from jsonschema import Draft202012Validator, SchemaError
from mcp import Client
from mcp.shared.exceptions import MCPError

from agentapp.engine import EffectClass
from tools_admin.connectors.base import ConnectorError, ToolSpec

MAX_PAGES = 50
MAX_TOOLS = 1_000
MAX_DESCRIPTION_CHARS = 4_000
MAX_SCHEMA_CHARS = 50_000

READ_RESOURCE = "resources/read"
LIST_RESOURCES = "resources/list"

_RESOURCE_TOOLS = [
    ToolSpec(
        "list_resources",
        "List the documents and other resources that the server offers for reading.",
        {"type": "object", "properties": {}, "additionalProperties": False},
        effect_class=EffectClass.READ,
        key=LIST_RESOURCES,
    ),
    ToolSpec(
        "read_resource",
        "Read a resource of the server by its address (URI).",
        {
            "type": "object",
            "required": ["uri"],
            "properties": {"uri": {"type": "string", "description": "As list_resources or a result names it."}},
            "additionalProperties": False,
        },
        effect_class=EffectClass.READ,
        key=READ_RESOURCE,
    ),
]


async def read_catalogue(client: Client) -> list[mcp_types.Tool]:
    """All tools of a server, page by page; raises ConnectorError for a list without an end."""
    tools: list[mcp_types.Tool] = []
    cursor = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            return tools
        if len(tools) > MAX_TOOLS:
            break
    raise ConnectorError(f"The server's list of tools has no end: more than {MAX_PAGES} pages or {MAX_TOOLS} tools.")


async def specs_of(tools: Sequence[mcp_types.Tool], client: Client) -> list[ToolSpec]:
    """The tools that can be called from here, and two for resources where the server has some."""
    specs = {spec.key: spec for tool in tools if (spec := spec_of(tool))}
    if await _has_resources(client):
        specs |= {spec.key: spec for spec in _RESOURCE_TOOLS}
    return list(specs.values())


async def _has_resources(client: Client) -> bool:
    """Many servers announce resources and have none."""
    if client.server_capabilities.resources is None:
        return False
    try:
        if (await client.list_resources()).resources:
            return True
        return bool((await client.list_resource_templates()).resource_templates)
    except MCPError:
        return False


def spec_of(tool: mcp_types.Tool) -> ToolSpec | None:
    """None for a tool that cannot be called by us: one that only runs as a task, or with a broken schema."""
    schema = plain_schema(tool.input_schema)
    if schema is None or (tool.execution and tool.execution.task_support == "required"):
        return None
    description = (tool.description or tool.title or tool.name)[:MAX_DESCRIPTION_CHARS]
    effect = effect_of(tool)
    definition = {"effect": effect, "digest": digest_of(tool)}
    return ToolSpec(tool.name, description, schema, effect_class=effect, key=tool.name, definition=definition)


def digest_of(tool: mcp_types.Tool) -> str:
    """SHA-256 of all by which people and models know what a tool does."""
    hints = tool.annotations.model_dump(mode="json", exclude_none=True) if tool.annotations else {}
    said = [tool.title, tool.description, tool.input_schema, hints]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def effect_of(tool: mcp_types.Tool) -> EffectClass:
    """The server's word; without it a call is taken for one that cannot be repeated. An administrator decides."""
    hints = tool.annotations
    if hints is not None and hints.read_only_hint:
        return EffectClass.READ
    if hints is not None and hints.idempotent_hint:
        return EffectClass.IDEMPOTENT
    return EffectClass.ONCE


def plain_schema(schema: Any) -> dict[str, Any] | None:
    """An input schema without what providers of models refuse; None when it is no schema of an object."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object" or len(str(schema)) > MAX_SCHEMA_CHARS:
        return None
    kept = {key: value for key, value in schema.items() if key not in ("$schema", "$id")}
    kept = {**kept, "type": "object", "properties": kept.get("properties") or {}}
    try:
        Draft202012Validator.check_schema(kept)
    except SchemaError:
        return None
    return kept
