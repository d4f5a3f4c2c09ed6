"""From the schemas of OpenAPI 2.0, 3.0 and 3.1 to a JSON Schema that stands alone.

Only keywords that are known are taken over. References become `$defs`, so recursion stays recursion; patterns become
words in the description, because matching a foreign pattern against a model's text can take for ever.
"""

import re
from collections.abc import Callable
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

MAX_DEPTH = 30
MAX_DEFINITIONS = 150
MAX_DESCRIPTION = 500

Look = Callable[[Any], Any]  # follows `$ref`s; gives None for what cannot be found

_TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}
_NUMBERS = ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


class Converter:
    """For the arguments of one operation; `definitions` collects what its schemas refer to."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._names: dict[str, str] = {}
        self.definitions: dict[str, Any] = {}

    def convert(self, schema: Any, depth: int = 0) -> dict[str, Any]:
        """A schema that a model and a validator understand; what makes no sense becomes "anything"."""
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return {}
        if isinstance(schema.get("$ref"), str):
            return self._refer(schema["$ref"])
        made = _plain_keywords(schema)
        self._containers(schema, made, depth)
        for name in ("allOf", "anyOf", "oneOf"):
            if isinstance(schema.get(name), list) and schema[name]:
                made[name] = [self.convert(part, depth + 1) for part in schema[name][:50]]
        if isinstance(schema.get("not"), dict):
            made["not"] = self.convert(schema["not"], depth + 1)
        return _with_null(made) if schema.get("nullable") is True else made

    def _containers(self, schema: dict[str, Any], made: dict[str, Any], depth: int) -> None:
        properties = schema.get("properties")
        if isinstance(properties, dict):
            # What only the server writes is not asked for.
            own = {n: p for n, p in properties.items() if not (isinstance(p, dict) and p.get("readOnly") is True)}
            made["properties"] = {str(name): self.convert(part, depth + 1) for name, part in own.items()}
            made.setdefault("type", "object")
        required = schema.get("required")
        if isinstance(required, list):
            known = made.get("properties")
            names = [name for name in required if isinstance(name, str) and (known is None or name in known)]
            if names:
                made["required"] = list(dict.fromkeys(names))
        extra = schema.get("additionalProperties")
        if isinstance(extra, bool):
            made["additionalProperties"] = extra
        elif isinstance(extra, dict):
            made["additionalProperties"] = self.convert(extra, depth + 1)
        if isinstance(schema.get("items"), dict):
            made["items"] = self.convert(schema["items"], depth + 1)

    def _refer(self, reference: str) -> dict[str, Any]:
        if reference not in self._names:
            target = self._look({"$ref": reference})
            if target is None or len(self.definitions) >= MAX_DEFINITIONS:
                return {}
            base = re.sub(r"[^A-Za-z0-9_]", "_", reference.rsplit("/", 1)[-1])[:60] or "schema"
            name, number = base, 2
            while name in self.definitions:
                name, number = f"{base}_{number}", number + 1
            self._names[reference] = name
            self.definitions[name] = {}  # its place, for when it refers to itself
            self.definitions[name] = self.convert(target)
        return {"$ref": f"#/$defs/{self._names[reference]}"}


def checked(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or "anything" when it is none after all."""
    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError):
        return {}
    return schema


def _plain_keywords(schema: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    kind = schema.get("type")
    if kind == "file" or (kind == "string" and schema.get("format") in ("binary", "byte")):
        made["type"] = "string"
    elif isinstance(kind, str) and kind in _TYPES:
        made["type"] = kind
    elif isinstance(kind, list) and (kinds := [name for name in kind if isinstance(name, str) and name in _TYPES]):
        made["type"] = list(dict.fromkeys(kinds))
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        made["enum"] = schema["enum"][:200]
    if "const" in schema:
        made["const"] = schema["const"]
    if "default" in schema:
        made["default"] = schema["default"]
    for name in _NUMBERS:
        if isinstance(schema.get(name), int | float) and not isinstance(schema[name], bool):
            made[name] = schema[name]
    for side in ("Minimum", "Maximum"):  # before 3.1 a flag beside the bound
        bound = side.lower()
        if schema.get(f"exclusive{side}") is True and bound in made:
            made[f"exclusive{side}"] = made.pop(bound)
    for name in _COUNTS:
        if isinstance(schema.get(name), int) and not isinstance(schema[name], bool) and schema[name] >= 0:
            made[name] = schema[name]
    if isinstance(schema.get("format"), str):
        made["format"] = schema["format"][:40]
    if told := _description(schema):
        made["description"] = told
    return made


def _description(schema: dict[str, Any]) -> str:
    told = schema.get("description") or schema.get("title")
    text = " ".join(told.split()) if isinstance(told, str) else ""
    if schema.get("type") == "file" or schema.get("format") in ("binary", "byte"):
        text = f"{text} The file's content as text, or as a data: URL with base64.".strip()
    if isinstance(schema.get("pattern"), str):
        text = f"{text} Pattern: {schema['pattern'][:100]}".strip()
    return text if len(text) <= MAX_DESCRIPTION else f"{text[: MAX_DESCRIPTION - 1]}…"


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if isinstance(kind, str):
        made = {**schema, "type": [kind, "null"]}
        return {**made, "enum": [*made["enum"], None]} if "enum" in made and None not in made["enum"] else made
    return schema if kind or not schema else {"anyOf": [schema, {"type": "null"}]}
