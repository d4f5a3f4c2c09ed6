"""Templates of hand-made actions: `{name}` stands for an argument, everything else for itself."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from agentapp.outbound import check_segment

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_GONE = object()


class Missing(Exception):
    """An argument that the template needs is not given; the text is its name."""


def names_in(template: Any) -> Iterator[str]:
    """The arguments that a template mentions, in order."""
    if isinstance(template, str):
        yield from _PLACE.findall(template)
    elif isinstance(template, dict):
        for value in template.values():
            yield from names_in(value)
    elif isinstance(template, list):
        for value in template:
            yield from names_in(value)


def fill_text(template: str, arguments: Mapping[str, Any]) -> str:
    """Text with the arguments in it; raises Missing."""
    return _PLACE.sub(lambda found: _spoken(_value(found.group(1), arguments)), template)


def fill_path(template: str, arguments: Mapping[str, Any]) -> str:
    """An encoded path in which each argument stays within its segment; raises Missing and outbound's Refused."""
    filled = []
    for segment in template.strip("/").split("/"):
        text = fill_text(segment, arguments)
        if segment != text:
            check_segment(text)
        filled.append(quote(text, safe="~@!$&'()*+,;=:" if segment == text else ""))
    return "/" + "/".join(filled)


def fill(template: Any, arguments: Mapping[str, Any]) -> Any:
    """A JSON value. `"{name}"` alone becomes the argument itself, of any type; without one its entry is left out."""
    filled = _fill(template, arguments)
    return None if filled is _GONE else filled


def _fill(template: Any, arguments: Mapping[str, Any]) -> Any:
    if isinstance(template, dict):
        pairs = ((key, _fill(value, arguments)) for key, value in template.items())
        return {key: value for key, value in pairs if value is not _GONE}
    if isinstance(template, list):
        return [value for item in template if (value := _fill(item, arguments)) is not _GONE]
    if not isinstance(template, str):
        return template
    try:
        whole = _PLACE.fullmatch(template)
        return _value(whole.group(1), arguments) if whole else fill_text(template, arguments)
    except Missing:
        return _GONE


def _value(name: str, arguments: Mapping[str, Any]) -> Any:
    if arguments.get(name) is None:
        raise Missing(name)
    return arguments[name]


def _spoken(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
