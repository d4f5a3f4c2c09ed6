"""Values against JSON Schemas that strangers wrote: nothing that a schema refers to is fetched, and a schema that
cannot be used is a fault of every value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from referencing import Registry
from referencing.exceptions import Unresolvable


def validator_of(schema: Mapping[str, Any]) -> Any:
    """With a registry of its own: without one a reference to elsewhere would be fetched."""
    return Draft202012Validator(dict(schema), registry=Registry())


def faults(validator: Any, value: Any) -> Iterator[Any]:
    """Each fault, as `jsonschema` describes it."""
    try:
        yield from validator.iter_errors(value)
    except (Unresolvable, RecursionError, re.error) as error:
        yield ValidationError(f"the schema cannot be used ({type(error).__name__.strip('_')})")


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
