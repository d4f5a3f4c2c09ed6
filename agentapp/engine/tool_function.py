"""Making a tool of a typed function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, overload

from .journal import EffectClass
from .tools import Tool


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str = ...,
    description: str = ...,
    effect_class: EffectClass = ...,
    needs_approval: bool = ...,
    timeout: float = ...,
    max_result_chars: int = ...,
    repeatable: bool = ...,
    cacheable: bool = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool of a typed function: name, description and JSON Schema come from it."""
    if function is None:
        return lambda decorated: tool_from_function(decorated, **options)
    return tool_from_function(function, **options)


def tool_from_function(function: Callable[..., Any], **options: Any) -> Tool:
    name = options.pop("name", function.__name__)
    description = options.pop("description", inspect.getdoc(function) or "")
    return Tool(name, description, schema_of(function), function, **options)


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON Schema of a function's parameters, from its annotations and defaults."""
    from pydantic import BaseModel, ConfigDict, create_model  # heavy, and only needed here

    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"{function.__name__}: parameter {name!r} cannot be given by name")
        annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
        fields[name] = (annotation, ... if parameter.default is parameter.empty else parameter.default)
    model: type[BaseModel] = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
    return _without_titles(model.model_json_schema())


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Generated titles only cost tokens."""
    schema.pop("title", None)
    for part in (schema.get("properties"), schema.get("$defs")):
        for value in (part or {}).values():
            _without_titles(value)
    return schema
