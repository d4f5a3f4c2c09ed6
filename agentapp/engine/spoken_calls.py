"""Tool calls in forms without markup: Python lists, rows of objects, and the lines of classic ReAct prompts."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from .json_text import extract_json

Call = tuple[str, dict[str, Any]]

_DECODER = json.JSONDecoder()
_LONGEST_PYTHON = 20_000
_SEPARATOR = re.compile(r"\s*;\s*")
_ACTION = re.compile(
    r"^[ \t]*Action[ \t]*:[ \t]*(?P<name>[^\n]+?)[ \t]*\n+[ \t]*Action Input[ \t]*:[ \t]*", re.MULTILINE | re.IGNORECASE
)
_FINAL = re.compile(r"^[ \t]*Final Answer[ \t]*:[ \t]*", re.MULTILINE | re.IGNORECASE)
_INPUT_END = re.compile(r"\n\s*(?:Observation|Thought|Action|Final Answer)\s*:", re.IGNORECASE)


def read_python_calls(text: str, known: Container[str]) -> list[Call] | None:
    """Calls from `[name(key=value), …]` with literal values and known names only; nothing is ever evaluated."""
    text = text.strip()
    if not text.startswith("[") or len(text) > _LONGEST_PYTHON:
        return None
    try:
        listed = ast.parse(text, mode="eval").body
        calls = [_python_call(item) for item in listed.elts] if isinstance(listed, ast.List) else []
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return calls if calls and all(name in known for name, _ in calls) else None


def _python_call(node: ast.expr) -> Call:
    if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError("not a call with named arguments")
    arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    json.dumps(arguments, allow_nan=False)  # sets, bytes and the like are no arguments
    return ast.unparse(node.func), arguments


def named_call(value: Any) -> Call | None:
    """A call from an object that holds its own name."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        arguments = json_at(arguments, 0)[0]
    return (value["name"], arguments) if isinstance(arguments, dict) else None


def bare_call(value: Any) -> Call | None:
    """The same of an object that holds nothing else."""
    if not isinstance(value, dict) or value.keys() - {"name", "arguments", "parameters", "type", "id"}:
        return None
    return named_call(value)


def read_row_of_calls(text: str, known: Container[str]) -> tuple[str, list[Call]] | None:
    """The text before, and the calls of, two or more objects with a semicolon between them."""
    start = text.find('{"name"')
    if start < 0 or ";" not in text[start:]:
        return None
    calls, position = [], start
    while True:
        value, end = json_at(text, position)
        call = bare_call(value)
        if call is None or call[0] not in known:
            return None
        calls.append(call)
        separator = _SEPARATOR.match(text, end)
        if separator is None:
            return (text[:start], calls) if len(calls) > 1 else None
        position = separator.end()


def json_at(text: str, position: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, position


@dataclass(frozen=True, slots=True)
class ReactText:
    """Either an action with its input (None when it is no object), or a final answer."""

    action: str | None = None
    action_input: dict[str, Any] | None = None
    raw_input: str = ""
    answer: str = ""
    thought: str = ""


def read_react_text(text: str) -> ReactText | None:
    """What `Thought: … Action: … Action Input: …` or `Final Answer: …` says. Whatever a model wrote behind its first
    action it has made up."""
    action, final = _ACTION.search(text), _FINAL.search(text)
    if action is not None and (final is None or action.start() < final.start()):
        rest = _INPUT_END.split(text[action.end() :], maxsplit=1)[0].strip()
        return ReactText(action["name"].strip("`*\"' "), _input(rest), rest, thought=_thought(text[: action.start()]))
    if final is not None:
        answer = text[final.end() :].strip().removesuffix("```").strip()
        return ReactText(answer=answer, thought=_thought(text[: final.start()])) if answer else None
    return None


def _input(text: str) -> dict[str, Any] | None:
    """The first object of an input, which may stand in a fence that is never closed."""
    if text in ("", "None", "null"):
        return {}
    value, _ = json_at(text, len(text) - len(text.lstrip("`json \n")))
    return value if isinstance(value, dict) else extract_json(text)


def _thought(text: str) -> str:
    return text.rpartition("Thought:")[2].strip("` \n")
