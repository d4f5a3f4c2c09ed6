"""A server's question to the person: from MCP's form of it to ours, and back."""

from __future__ import annotations

from typing import Any

import mcp_types
from jsonschema import Draft202012Validator, SchemaError

from agentapp.engine import schema_fault
from tools_admin.connectors.person import Answer, Question, asking

MAX_FIELDS = 20
_PLAIN = {"string", "number", "integer", "boolean", "array"}


async def elicited(params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult | mcp_types.ErrorData:
    """Asks the person of this context; refuses what cannot be shown to them, in words for the server's log."""
    ask = asking.get()
    if ask is None:
        return _refusal("Nobody can be asked here.")
    if isinstance(params, mcp_types.ElicitRequestURLParams):
        if not params.url.startswith("https://"):
            return _refusal("Only pages with https:// are shown to people.")
        return _result(await ask(Question(params.message[:2_000], url=params.url[:2_000])))
    schema = _flat(dict(params.requested_schema))
    if schema is None:
        return _refusal("Only flat forms of at most 20 plain fields are shown to people.")
    answer = await ask(Question(params.message[:2_000], schema))
    content = with_defaults(schema, answer.content)
    if answer.action == "accept" and schema_fault(schema, content) is not None:
        return _refusal("The person's answer does not fit the form.")
    return _result(Answer(answer.action, content))


def _flat(schema: dict[str, Any]) -> dict[str, Any] | None:
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict) or len(properties) > MAX_FIELDS:
        return None
    plain = all(isinstance(field, dict) and field.get("type") in _PLAIN for field in properties.values())
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return None
    return {key: value for key, value in schema.items() if key != "$schema"} if plain else None


def with_defaults(schema: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """What the person left out is what the server proposed."""
    defaults = {name: field["default"] for name, field in schema["properties"].items() if "default" in field}
    return {**defaults, **content}


def _result(answer: Answer) -> mcp_types.ElicitResult:
    content = answer.content if answer.action == "accept" else None
    return mcp_types.ElicitResult(action=answer.action, content=content)


def _refusal(text: str) -> mcp_types.ErrorData:
    return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=text)
