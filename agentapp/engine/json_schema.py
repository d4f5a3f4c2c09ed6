"""Values against JSON Schemas that strangers wrote: nothing that a schema refers to is fetched, a schema that cannot be
used is a fault of every value, and none takes long, whatever its patterns and references are made of."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import regex
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

# Validation is done between the steps of all runs of a worker. Honest schemas take a thousandth of it.
SECONDS = 0.5
_until: ContextVar[float | None] = ContextVar("json_schema_until", default=None)


class TooSlow(Exception):
    """A schema that keeps whoever judges by it busy."""


def _left() -> float:
    until = _until.get()
    if until is None:  # somebody looks at a part of what was found
        return SECONDS
    left = until - time.perf_counter()
    if left <= 0:
        raise TooSlow
    return left


def _matches(pattern: str, text: str) -> bool:
    """By an engine that can be told to stop."""
    try:
        return regex.search(pattern, text, timeout=_left()) is not None
    except TimeoutError:
        raise TooSlow from None


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    if validator.is_type(value, "string") and not _matches(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, schema: Any) -> Iterator[Any]:
    if validator.is_type(value, "object"):
        for pattern, part in patterns.items():
            for name in [name for name in value if _matches(pattern, name)]:
                yield from validator.descend(value[name], part, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[Any]:
    """As the library has it, which looks for the patterns of its neighbour by itself."""
    if not validator.is_type(value, "object"):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extra = [name for name in value if name not in known and not any(_matches(p, name) for p in patterns)]
    if validator.is_type(allowed, "object"):
        for name in extra:
            yield from validator.descend(value[name], allowed, path=name)
    elif not allowed and extra:
        names = ", ".join(map(repr, sorted(extra)))
        yield ValidationError(f"Additional properties are not allowed ({names} {_were(extra)} unexpected)")


def _were(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _unique(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    """In one go; the library compares each with each."""
    if wanted and validator.is_type(value, "array") and len({_canonical(item) for item in value}) < len(value):
        yield ValidationError("its items are not all different")


def _canonical(value: Any) -> str:
    """The same text for what is the same in JSON, where 1.0 is 1."""
    return json.dumps(_with_whole_numbers(value), sort_keys=True)


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _with_whole_numbers(item) for name, item in value.items()}
    return [_with_whole_numbers(item) for item in value] if isinstance(value, list) else value


def _timed(keyword: Callable[..., Any]) -> Callable[..., Any]:
    def judge(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        _left()
        return keyword(validator, value, instance, schema)

    return judge


_OWN = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique,
}
# It looks for patterns of its neighbours with the library's own engine, too, and providers of models do not know it.
_LEFT_OUT = ("unevaluatedProperties", "unevaluatedItems")
_Judge: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _timed(keyword) for name, keyword in {**Draft202012Validator.VALIDATORS, **_OWN}.items()}
    | {name: lambda *_: None for name in _LEFT_OUT},
)


def validator_of(schema: Mapping[str, Any]) -> Any:
    """With a registry of its own: without one a reference to elsewhere would be fetched."""
    return _Judge(dict(schema), registry=Registry())


def faults(validator: Any, value: Any) -> Iterator[Any]:
    """Each fault, as `jsonschema` describes it."""
    token = _until.set(time.perf_counter() + SECONDS)
    found: list[Any] = []
    try:
        found.extend(validator.iter_errors(value))
    except (Unresolvable, RecursionError, TooSlow, regex.error) as error:
        found.append(ValidationError(f"the schema cannot be used ({type(error).__name__.strip('_')})"))
    finally:
        _until.reset(token)
    yield from found


def worst_fault(validator: Any, value: Any) -> str | None:
    """What is most wrong with a value, and where, in words that help to repair it."""
    error = best_match(faults(validator, value))
    if error is None:
        return None
    place = error.json_path.removeprefix("$").lstrip(".")
    return f"{place}: {error.message}" if place else str(error.message)


def schema_fault(schema: Mapping[str, Any], value: Any) -> str | None:
    """The same for a schema that is used once."""
    return worst_fault(validator_of(schema), value)
