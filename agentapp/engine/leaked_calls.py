"""Tool calls that a model writes as text, because its server did not recognise them.

Only whole blocks of known markup at the end of a reply are calls; markup that is quoted, or that prose follows,
is prose. Nothing here guesses: what cannot be read exactly is not run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .messages import ToolCall
from .spoken_calls import Call, bare_call, json_at, named_call, read_python_calls, read_row_of_calls

_NAME = r"[\w.-]+"
_MARKER = re.compile(
    r"<tool_call>|<function=|<\|tool_calls?_(?:section_)?begin\|>|<｜tool▁calls?▁begin｜>|\[TOOL_CALLS\]|<｜DSML｜"
    r"|<\|python_(?:start|tag)\|>"
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
    "<|python_start|>",
    "<|python_tag|>",
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
_PYTHON = re.compile(r"<\|python_(?:start|tag)\|>(?P<body>.*?)(?:<\|python_end\|>|<\|eom_id\|>|\Z)", re.DOTALL)
_PARAMETER = re.compile(
    r"\s*(?:<parameter=(?P<key>[^>\s]+)>\n?(?P<value>.*?)\n?</parameter>"
    r'|<｜DSML｜parameter name="(?P<key2>[^"]+)"[^>]*>(?P<value2>.*?)</｜DSML｜parameter>)\s*',
    re.DOTALL,
)
_SUSPICIOUS = re.compile(r"[<\[{]")
_PYTHON_CALL = re.compile(rf"\[\s*{_NAME}\(")
_PYTHON_CALL_BEGUN = re.compile(rf"\[\s*(?:{_NAME})?")
_BETWEEN = re.compile(
    r"\s|```|</tool_call>|</function>|<\|tool_calls?_(?:section_)?(?:begin|end)\|>(?!\s*(?:functions\.)?[\w.-]+(?::\d+)?\s*[<{])"
    r"|<｜tool▁calls▁begin｜>|<｜tool▁calls?▁end｜>|</?｜DSML｜function_calls>|</?｜DSML｜tool_calls>|;|,"
)


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
    start = markup_position(text)
    if start is None:
        return _without_markup(text, schemas)
    if python := _PYTHON.match(text, start):  # no prose has these tokens, so what follows them does not matter
        return text[:start], _python_block(python["body"], schemas)
    calls, end = _read_calls(text, start, schemas)
    if not calls:
        return text[:start], []
    return None if text[end:].strip() else (text[:start], calls)


def take_out_calls(text: str, definitions: Sequence[Mapping[str, Any]]) -> tuple[str, list[ToolCall]]:
    """A reply's text without the calls in it, and these calls, which there are only where there are tools.

    Calls that cannot be read leave nothing: what was said around them is no answer, so the model is asked again.
    """
    found = read_leaked_calls(text, definitions)
    if found is None:
        return text, []
    said, calls = found
    if not definitions:
        return said, []
    return (said, [ToolCall("", name, arguments) for name, arguments in calls]) if calls else ("", [])


def _without_markup(text: str, schemas: Mapping[str, Any]) -> tuple[str, list[Call]] | None:
    """Forms that are calls only because all of them name a tool."""
    stripped = text.strip()
    if (calls := read_python_calls(stripped, schemas)) is not None:
        return "", calls
    value, end = json_at(stripped, 0)
    bare = bare_call(value) if end == len(stripped) else None
    if bare is not None:
        return ("", [bare]) if bare[0] in schemas else None
    return read_row_of_calls(text, schemas)


def _python_block(body: str, schemas: Mapping[str, Any]) -> list[Call]:
    value, _ = json_at(body.strip(), 0)
    call = named_call(value)
    return [call] if call is not None else read_python_calls(body, schemas) or []


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
        items, end = json_at(text, head.end())
        calls = [named_call(item) for item in items] if isinstance(items, list) else [None]
        return ([call for call in calls if call], end) if all(calls) else None
    for pattern in _HEADS:
        if head := pattern.match(text, position):
            value, end = json_at(text, head.end())
            name = head.groupdict().get("name")
            call = named_call(value) if name is None else (name, value) if isinstance(value, dict) else None
            if call is not None:
                return [call], end
    for pattern in _ELEMENT_CALLS:
        if element := pattern.match(text, position):
            name = element["name"]
            arguments = _parameters(element["body"], schemas.get(name, {}))
            return None if arguments is None else ([(name, arguments)], element.end())
    return None


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
        self._pieces: list[str] = []
        self._pending = ""
        self._held = False
        self.released = 0

    def feed(self, piece: str) -> str:
        if not (self._pending or self._held) and self.released and not _SUSPICIOUS.search(piece):
            self._pieces.append(piece)
            self.released += len(piece)
            return piece
        self._pending += piece
        if self._held:
            return ""
        out = self._pending[: self._safe_length()]
        self._pieces.append(out)
        self._pending = self._pending[len(out) :]
        self.released += len(out)
        return out

    def _safe_length(self) -> int:
        if not self.released:
            begin = self._pending.lstrip()
            self._held = begin.startswith("{") or _PYTHON_CALL.match(begin) is not None
            if self._held or not begin or _PYTHON_CALL_BEGUN.fullmatch(begin):
                return 0
        if (position := self._markup_in_pending()) is not None:
            self._held = True
            return position
        opening = max(map(self._pending.rfind, "<[{"))
        if opening < 0:
            return len(self._pending)
        last = self._pending[opening:]
        begun = any(marker.startswith(last) for marker in (*_MARKER_TEXTS, '{"name"'))
        return opening if begun else len(self._pending)

    def _markup_in_pending(self) -> int | None:
        row = self._pending.find('{"name"')
        if row < 0 and not _MARKER.search(self._pending):
            return None
        before = "".join(self._pieces)  # what is quoted, and so no markup, shows only in the whole text
        position = markup_position(before + self._pending, len(before))
        if position is None:
            return None if row < 0 else row
        return min(position - len(before), row) if row >= 0 else position - len(before)
