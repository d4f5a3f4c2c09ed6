"""Finding the JSON object in what a model wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_FENCE = re.compile(r"```[ \t]*(?:json\w*)?\s*(.*?)```", re.DOTALL | re.IGNORECASE)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|(.))', re.DOTALL)
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_NOISE = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|,(?=\s*[}\]])', re.DOTALL)
_WORDS = re.compile(r'("(?:[^"\\]|\\.)*")|\b(True|False|None)\b', re.DOTALL)
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*")|'((?:[^'\\]|\\.)*)'(?=\s*[:,}\]])""", re.DOTALL)
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_MARK = re.compile(r'\\.|["{}]', re.DOTALL)
# A bound for garbage: a text of nothing but braces must not take seconds.
_MAX_SCANNED_CHARS = 1_000_000


def extract_json(text: str) -> dict[str, Any] | None:
    """The object in a text, or None. Arrays and scalars are no objects; what would need a guess is refused."""
    for candidate in _candidates(text):
        if (found := _parse_object(candidate)) is not None:
            return found
    return None


def _candidates(text: str) -> Iterator[str]:
    yield text.strip()
    visible = _THINKING.sub("", text).rpartition("</think>")[2]
    for fence in _FENCE.finditer(visible):
        yield fence.group(1).strip()
    yield from _balanced_objects(visible)


def _balanced_objects(text: str) -> Iterator[str]:
    """Each piece from an opening brace to its match, looking past braces inside strings."""
    budget = _MAX_SCANNED_CHARS
    start = text.find("{")
    while start >= 0 and budget > 0:
        end = _matching_brace(text, start)
        if end is not None:
            yield text[start : end + 1]
        budget -= (len(text) if end is None else end) - start
        start = text.find("{", start + 1)


def _matching_brace(text: str, start: int) -> int | None:
    depth, in_string = 0, False
    for mark in _MARK.finditer(text, start):
        character = mark.group()
        if character == '"':
            in_string = not in_string
        elif in_string or character.startswith("\\"):
            continue
        else:
            depth += 1 if character == "{" else -1
            if depth == 0:
                return mark.start()
    return None


def _parse_object(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    for repair in (str, repair_strings, _repair_syntax):
        try:
            value = json.loads(repair(text), parse_constant=_refuse)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def repair_strings(text: str) -> str:
    """Doubles unknown escapes (such as those of LaTeX) and escapes raw newlines and tabs inside strings."""
    return _STRING.sub(lambda match: _repair_string(match.group()), text)


def _repair_string(text: str) -> str:
    text = _BAD_ESCAPE.sub(lambda match: "\\" + match.group() if match.group(1) else match.group(), text)
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _repair_syntax(text: str) -> str:
    """Single quotes, Python's words, line comments and trailing commas; text inside strings stays."""
    text = _QUOTED.sub(lambda match: match.group(1) or _double_quoted(match.group(2)), text)
    text = _NOISE.sub(lambda match: match.group(1) or "", text)
    text = _WORDS.sub(lambda match: match.group(1) or _PYTHON_WORDS[match.group(2)], text)
    return repair_strings(text)


def _double_quoted(text: str) -> str:
    return '"' + text.replace("\\'", "'").replace('"', '\\"') + '"'
