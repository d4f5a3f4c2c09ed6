"""`#E1` in the arguments of a planned call stands for the result of step E1; a backslash before it makes it text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .errors import PlanError

_EVIDENCE_ID = re.compile(r"E\d+", re.IGNORECASE)
Path = tuple[str | int, ...]


class Placeholders:
    """Finds and fills the placeholders for the steps of one plan. Case does not matter in them.

    A hash before a word that names no step is text, unless the word has the form of an evidence id.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = {id.casefold(): id for id in ids}
        odd = sorted((re.escape(id) for id in self._ids.values() if not re.fullmatch(r"\w+", id)), key=len)
        words = "|".join([*reversed(odd), r"\w+"])
        self._pattern = re.compile(rf"(\\?)#({words})(?!\w)", re.IGNORECASE)

    def references(self, value: Any) -> list[str]:
        """Each step that is referred to, in the order of the text; an unknown one as it is written."""
        found = [id for _, text in _strings(value) for id in self._in_text(text)]
        return list(dict.fromkeys(found))

    def in_keys(self, value: Any) -> list[str]:
        """References that stand in the keys of objects, where nothing can be filled in."""
        if isinstance(value, Mapping):
            own = [id for key in value for id in self._in_text(str(key))]
            return own + [id for part in value.values() for id in self.in_keys(part)]
        return [id for part in value for id in self.in_keys(part)] if isinstance(value, list | tuple) else []

    def fill(self, value: Any, results: Mapping[str, str]) -> Any:
        """The value with results in place of placeholders, as text, and escaped ones as they are meant."""

        def put(match: re.Match[str]) -> str:
            id = self._named(match)
            if id is None:
                return match.group()
            return match.group()[1:] if match.group(1) else results[id]

        return _mapped(value, lambda text: self._pattern.sub(put, text))

    def whole(self, value: Any) -> dict[Path, str]:
        """Where a string is nothing but one placeholder, and for which step."""
        matches = ((path, self._pattern.fullmatch(text.strip())) for path, text in _strings(value))
        named = ((path, self._named(match)) for path, match in matches if match and not match.group(1))
        return {path: id for path, id in named if id is not None}

    def renamed(self, value: Any, names: Mapping[str, str]) -> Any:
        """The value with placeholders for other steps."""

        def put(match: re.Match[str]) -> str:
            new = None if match.group(1) else names.get(self._named(match) or "")
            return f"#{new}" if new else match.group()

        return _mapped(value, lambda text: self._pattern.sub(put, text))

    def _in_text(self, text: str) -> Iterator[str]:
        if "#" in text:
            for match in self._pattern.finditer(text):
                if not match.group(1) and (id := self._named(match)) is not None:
                    yield id

    def _named(self, match: re.Match[str]) -> str | None:
        word = match.group(2)
        known = self._ids.get(word.casefold())
        return known or (word.upper() if _EVIDENCE_ID.fullmatch(word) else None)


def normal_id(value: Any) -> str:
    """One form for `E1`, `#E1` and ` #e1 `. Raises PlanError for what is no name."""
    if isinstance(value, bool) or not isinstance(value, str | int) or (isinstance(value, int) and abs(value) > 10**9):
        raise PlanError("plan_failed", (), f"an id of a step is a short text, not {type(value).__name__}")
    id = str(value).strip().removeprefix("#").strip()
    if not id or len(id) > 100:
        raise PlanError("plan_failed", (), f"{id[:100]!r} is no id of a step")
    return id.upper() if _EVIDENCE_ID.fullmatch(id) else id


def put_at(value: Any, path: Path, part: Any) -> Any:
    """A copy of nested lists and objects with `part` at `path`."""
    if not path:
        return part
    copy = dict(value) if isinstance(value, Mapping) else list(value)
    copy[path[0]] = put_at(value[path[0]], path[1:], part)  # type: ignore[index]
    return copy


def json_value(text: str) -> Any:
    """What a text says as JSON; raises ValueError."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _strings(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _strings(part, (*path, key))
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            yield from _strings(part, (*path, place))


def _mapped(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value) if "#" in value else value
    if isinstance(value, Mapping):
        return {key: _mapped(part, change) for key, part in value.items()}
    return [_mapped(part, change) for part in value] if isinstance(value, list | tuple) else value
