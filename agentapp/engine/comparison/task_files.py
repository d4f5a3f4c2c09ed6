"""Task sets as files that people write: YAML with everything, CSV with one task a row."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any, NoReturn

import yaml

from .tasks import BadTaskSet, Refuse, Task, TaskSet, check_ids, is_number, read_task

MOST_CHARS = 1_000_000
MOST_VALUES = 50_000
COLUMNS = (
    "id",
    "question",
    "grader",
    "expected",
    "tolerance",
    "fault",
    "fault_tool",
    "fault_times",
    "fault_text",
)
Lines = dict[tuple[str | int, ...], int]


def read_yaml(text: str) -> TaskSet:
    """`name` and `tasks`. Raises BadTaskSet with line and field."""
    lines: Lines = {}
    try:
        node = yaml.compose(_bounded(text), Loader=yaml.SafeLoader)
        data = _plain(node, (), lines) if node is not None else None
    except RecursionError:
        raise BadTaskSet("Line 1: the file is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        raise BadTaskSet(f"Line {mark.line + 1 if mark else 1}: this is no YAML: {what}") from None
    if not isinstance(data, dict) or not isinstance(data.get("tasks"), list):
        raise BadTaskSet("Line 1, field `tasks`: the file is an object with `name` and a list of `tasks`")
    for name in data:
        if name not in ("name", "tasks"):
            _at(lines, (name,), name, "there is no such field here; there are name, tasks")
    tasks = []
    for place, raw in enumerate(data["tasks"]):
        if not isinstance(raw, dict):
            _at(lines, ("tasks", place), "tasks", "a task is an object with `question`, `grader` and `expected`")
        tasks.append(read_task(raw, place + 1, _refusing(lines, place)))
    check_ids(tasks, lambda place, name, text: _at(lines, ("tasks", place, *name.split(".")), name, text))
    return TaskSet(str(data.get("name") or "Tasks")[:200], tasks)


def read_csv(text: str, name: str = "Tasks") -> TaskSet:
    """A header row and one task a row; columns as in `COLUMNS`, in any order. Raises BadTaskSet with line and field."""
    rows = csv.DictReader(io.StringIO(_bounded(text).lstrip("\ufeff"), newline=""), strict=True)
    tasks: list[Task] = []
    lines: list[int] = []
    try:
        unknown = [column for column in rows.fieldnames or () if column not in COLUMNS]
        if unknown or not rows.fieldnames:
            known = f"the columns are {', '.join(COLUMNS)}"
            raise BadTaskSet(f"Line 1, field `{unknown[0] if unknown else 'question'}`: {known}")
        for row in rows:
            line = rows.line_num
            if None in row:
                raise BadTaskSet(f"Line {line}: there are more values than columns; put a comma into quotes")
            tasks.append(read_task(_from_row(row, line), len(tasks) + 1, _refusing_row(line)))
            lines.append(line)
    except csv.Error as error:
        raise BadTaskSet(f"Line {rows.line_num}: this is no CSV: {error}") from None

    def refuse(place: int, name: str, text: str) -> NoReturn:
        raise BadTaskSet(f"Line {lines[place] if place < len(lines) else 1}, field `{name}`: {text}")

    check_ids(tasks, refuse)
    return TaskSet(name[:200], tasks)


def _from_row(row: Mapping[str, str | None], line: int) -> dict[str, Any]:
    """A row as the values that it stands for."""
    given = {name: value.strip() for name, value in row.items() if value and value.strip()}
    fault = {name.removeprefix("fault_"): given.pop(name) for name in list(given) if name.startswith("fault_")}
    if kind := given.pop("fault", None):
        fault["kind"] = kind
    raw: dict[str, Any] = {**given, **({"fault": fault} if fault else {})}
    for holder, name in ((raw, "tolerance"), (fault, "times"), (raw, "expected")):
        if name in holder and not (name == "expected" and raw.get("grader") not in ("number", "schema")):
            holder[name] = _value(holder[name])
    if raw.get("grader") == "contains" and "expected" in raw:
        raw["expected"] = [part.strip() for part in raw["expected"].split("|")]
    return raw


def _value(text: str) -> Any:
    """A number or an object; a text that is neither is judged as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _bounded(text: str) -> str:
    if len(text) > MOST_CHARS:
        raise BadTaskSet(f"Line 1: the file has {len(text):,} characters, at most {MOST_CHARS:,} are allowed")
    return text


def _refusing(lines: Lines, place: int) -> Refuse:
    return lambda name, text: _at(lines, ("tasks", place, *name.split(".")), name, text)


def _refusing_row(line: int) -> Refuse:
    def refuse(name: str, text: str) -> NoReturn:
        raise BadTaskSet(f"Line {line}, field `{name.replace('.', '_').replace('fault_kind', 'fault')}`: {text}")

    return refuse


def _at(lines: Lines, path: tuple[str | int, ...], name: str, text: str) -> NoReturn:
    """Raises with the line of the field, or of the nearest thing around it that is there."""
    line = next((lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in lines), 1)
    raise BadTaskSet(f"Line {line}, field `{name}`: {text}")


def _plain(node: yaml.Node, path: tuple[str | int, ...], lines: Lines) -> Any:
    """The value of a node; where each part of it stands goes into `lines`."""
    if len(lines) > MOST_VALUES:  # aliases can make much out of little
        raise BadTaskSet(f"Line {node.start_mark.line + 1}: the file holds more than {MOST_VALUES:,} values")
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            if not name or name in found:
                what = f"`{name}` is there twice" if name else "a field's name is a plain text"
                raise BadTaskSet(f"Line {key.start_mark.line + 1}: {what}")
            found[name] = _plain(value, (*path, name), lines)
            lines[(*path, name)] = key.start_mark.line + 1
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_plain(value, (*path, place), lines) for place, value in enumerate(node.value)]
    return _scalar(node)


def _scalar(node: yaml.Node) -> Any:
    """Numbers, truth values and null as JSON has them; dates, times, `yes` and the like are texts."""
    kind, text = node.tag.rpartition(":")[2], str(node.value)
    if kind == "null":
        return None
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind in ("int", "float") and ":" not in text:
        number = yaml.safe_load(text)
        return number if is_number(number) else text
    return text
