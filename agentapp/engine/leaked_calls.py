"""Tool calls that a model writes as text, because its server did not recognise them.

Only whole blocks of known markup at the end of a reply are calls; markup that is quoted, or that prose follows,
is prose. Nothing here guesses: what cannot be read exactly is not run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_NAME = r"[\w.-]+"
_MARKER = re.compile(
    r"<tool_call>|<function=|<\|tool_calls?_(?:section_)?begin\|>|<｜tool▁calls?▁begin｜>|\[TOOL_CALLS\]|<｜DSML｜"
)
_MARKER_TEXTS = (
    "<tool_call>",
    "<function=",
    "<|tool_call_begin|>",
    "<|tool_calls_section_begin|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "[TOOL_CALLS]",
    "<｜DSML｜",
)
# What stands before a call's JSON arguments. The name is missing where the object holds it.
_HEADS = (
    re.compile(rf"<tool_call>\s*<function=(?P<name>{_NAME})>\s*(?=\{{)"),
    re.compile(rf"<function=(?P<name>{_NAME})>\s*(?=\{{)"),
    re.compile(r"<tool_call>\s*(?=\{)"),
    re.compile(
        rf"<\|tool_call_begin\|>\s*(?:functions\.)?(?P<name>{_NAME})(?::\d+)?\s*(?:<\|tool_call_argument_begin\|>)?\s*"
    ),
    re.compile(
        rf"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<name>{_NAME})(?:<｜tool▁sep｜>)?\s*(?:```json\s*)?"
    ),
    re.compile(rf"\[TOOL_CALLS\]\s*(?P<name>{_NAME})\s*(?:\[ARGS\])?\s*(?=\{{)"),
)
_ARRAY_HEAD = re.compile(r"\[TOOL_CALLS\]\s*(?=\[)")
_ELEMENT_CALLS = (
    re.compile(
        rf"(?:<tool_call>\s*)?<function=(?P<name>{_NAME})>(?P<body>.*?)</function>(?:\s*</tool_call>)?", re.DOTALL
    ),
    re.compile(rf'<｜DSML｜invoke name="(?P<name>{_NAME})">(?P<body>.*?)</｜DSML｜invoke>', re.DOTALL),
)
_PARAMETER = re.compile(
    r"\s*(?:<parameter=(?P<key>[^>\s]+)>\n?(?P<value>.*?)\n?</parameter>"
    r'|<｜DSML｜parameter name="(?P<key2>[^"]+)"[^>]*>(?P<value2>.*?)</｜DSML｜parameter>)\s*',
    re.DOTALL,
)
_BETWEEN = re.compile(
    r"\s|```|</tool_call>|</function>|<\|tool_calls?_(?:section_)?(?:begin|end)\|>(?!\s*(?:functions\.)?[\w.-]+(?::\d+)?\s*[<{])"
    r"|<｜tool▁calls▁begin｜>|<｜tool▁calls?▁end｜>|</?｜DSML｜function_calls>|</?｜DSML｜tool_calls>|;|,"
)
_DECODER = json.JSONDecoder()

Call = tuple[str, dict[str, Any]]


def markup_position(text: str, start: int = 0) -> int | None:
    """Where unquoted markup of tool calls begins, looking from `start` on."""
    for found in _MARKER.finditer(text, start):
        before = text[: found.start()]
        if before.count("```") % 2 == 0 and before.rpartition("\n")[2].count("`") % 2 == 0:
            return found.start()
    return None


def read_leaked_calls(text: str, definitions: Iterable[Mapping[str, Any]]) -> tuple[str, list[Call]] | None:
    """The text before the calls, and the calls; None when the text is prose. Unreadable markup gives no calls."""
    schemas = {d["function"]["name"]: d["function"].get("parameters") or {} for d in definitions}
    stripped = text.strip()
    if stripped.startswith("{"):
        bare = _bare_call(stripped)
        return ("", [bare]) if bare is not None and bare[0] in schemas else None
    start = markup_position(text)
    if start is None:
        return None
    calls, end = _read_calls(text, start, schemas)
    if not calls:
        return "", []
    return None if text[end:].strip() else (text[:start], calls)


def _read_calls(text: str, position: int, schemas: Mapping[str, Any]) -> tuple[list[Call], int]:
    calls: list[Call] = []
    while position < len(text):
        found = _call_at(text, position, schemas)
        if found is not None:
            read, position = found
            calls += read
        elif between := _BETWEEN.match(text, position):
            position = between.end()
        else:
            break
    return calls, position


def _call_at(text: str, position: int, schemas: Mapping[str, Any]) -> tuple[list[Call], int] | None:
    if head := _ARRAY_HEAD.match(text, position):
        items, end = _json_at(text, head.end())
        calls = [_named(item) for item in items] if isinstance(items, list) else [None]
        return ([call for call in calls if call], end) if all(calls) else None
    for pattern in _HEADS:
        if head := pattern.match(text, position):
            value, end = _json_at(text, head.end())
            name = head.groupdict().get("name")
            call = _named(value) if name is None else (name, value) if isinstance(value, dict) else None
            if call is not None:
                return [call], end
    for pattern in _ELEMENT_CALLS:
        if element := pattern.match(text, position):
            name = element["name"]
            arguments = _parameters(element["body"], schemas.get(name, {}))
            return None if arguments is None else ([(name, arguments)], element.end())
    return None


def _json_at(text: str, position: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except ValueError:
        return None, position


def _named(value: Any) -> Call | None:
    """A call from an object that holds its own name."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        arguments = _json_at(arguments, 0)[0]
    return (value["name"], arguments) if isinstance(arguments, dict) else None


def _bare_call(text: str) -> Call | None:
    value, end = _json_at(text, 0)
    if (
        end != len(text)
        or not isinstance(value, dict)
        or value.keys() - {"name", "arguments", "parameters", "type", "id"}
    ):
        return None
    return _named(value)


def _parameters(body: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    arguments: dict[str, Any] = {}
    position = 0
    while position < len(body):
        found = _PARAMETER.match(body, position)
        if found is None:
            return None if body[position:].strip() else arguments
        key, value = found["key"] or found["key2"], found["value"] if found["key"] else found["value2"]
        kind = (schema.get("properties") or {}).get(key, {}).get("type", "string")
        arguments[key] = value if kind == "string" else _typed(value)
        position = found.end()
    return arguments


def _typed(value: str) -> Any:
    """The value that a schema wants to be no string; text that is no JSON is left for validation to refuse."""
    try:
        return json.loads(value)
    except ValueError:
        return value


class MarkupHold:
    """Lets streamed text through until it may be markup of a tool call; the rest waits for the end."""

    def __init__(self) -> None:
        self._text = ""
        self._released = 0
        self._held = False

    @property
    def released(self) -> int:
        return self._released

    def feed(self, piece: str) -> str:
        self._text += piece
        if self._held:
            return ""
        safe = self._safe_end()
        out = self._text[self._released : safe]
        self._released = max(self._released, safe)
        return out

    def _safe_end(self) -> int:
        if not self._released:
            begin = self._text.lstrip()
            self._held = begin.startswith("{")
            if self._held or not begin:
                return 0
        opening = max(self._text.rfind("<", self._released), self._text.rfind("[", self._released))
        if opening < 0:
            return len(self._text)
        position = markup_position(self._text, self._released)
        if position is not None:
            self._held = True
            return position
        last = self._text[opening:]
        return opening if any(marker.startswith(last) for marker in _MARKER_TEXTS) else len(self._text)
