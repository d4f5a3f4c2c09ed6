"""Tasks that routes are compared by: what is asked, what goes wrong meanwhile, and how an answer is graded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NoReturn

from jsonschema import Draft202012Validator, SchemaError

GRADERS = ("exact", "contains", "number", "schema", "judge")
FAULTS = ("error", "timeout", "empty", "misleading")
MOST_TASKS = 500

# Where a field stands, and what is wrong with it; raises BadTaskSet.
Refuse = Callable[[str, str], NoReturn]


class BadTaskSet(ValueError):
    """A task set that cannot be used. The text names line, field and what is expected there."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What the first `times` calls of a tool come to, or with `times` None all of them. Without a name it is any tool.

    `text` is the tool's word; a misleading result needs one.
    """

    kind: Literal["error", "timeout", "empty", "misleading"]
    tool: str = ""
    times: int | None = 1
    text: str = ""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call of the scripted model. Its value is one cell of the last line of the result, counted from 0 or the end."""

    tool: str
    arguments: Mapping[str, Any]
    cell: int = -1


@dataclass(frozen=True, slots=True)
class Script:
    """What the scripted model does: its calls, in which `#E1` is the value of the first one, and an answer with the
    values as `{1}`."""

    calls: Sequence[ScriptedCall]
    answer: str


@dataclass(frozen=True, slots=True)
class Task:
    """`expected` is a text (exact, judge), texts that all occur (contains), a number (number) or a JSON Schema."""

    id: str
    question: str
    grader: str
    expected: Any
    tolerance: float = 0.0
    fault: Fault | None = None
    script: Script | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON value that `from_dict` turns into an equal task."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Task:
        fault, script = data["fault"], data["script"]
        return cls(
            **{
                **data,
                "fault": fault and Fault(**fault),
                "script": script and Script([ScriptedCall(**call) for call in script["calls"]], script["answer"]),
            }
        )


@dataclass(frozen=True, slots=True)
class TaskSet:
    name: str
    tasks: Sequence[Task] = field(default_factory=tuple)


def read_task(raw: Mapping[str, Any], number: int, refuse: Refuse) -> Task:
    """A task from plain values; `refuse` says where they stand."""
    _known(raw, ("id", "question", "grader", "expected", "tolerance", "fault", "script"), "", refuse)
    grader = _text(raw, "grader", "", refuse)
    if grader not in GRADERS:
        refuse("grader", f"it must be one of {', '.join(GRADERS)}, not {grader!r}")
    tolerance = raw.get("tolerance", 0)
    if not is_number(tolerance) or tolerance < 0:
        refuse("tolerance", "it must be a number that is not negative")
    if tolerance and grader != "number":
        refuse("tolerance", f"only the grader `number` has one, not {grader!r}")
    return Task(
        str(raw.get("id") or f"task-{number}")[:100],
        _text(raw, "question", "", refuse),
        grader,
        _expected(grader, raw.get("expected"), refuse),
        float(tolerance),
        _fault(raw["fault"], refuse) if raw.get("fault") is not None else None,
        _script(raw["script"], refuse) if raw.get("script") is not None else None,
    )


def check_ids(tasks: Sequence[Task], refuse: Callable[[int, str, str], NoReturn]) -> None:
    """No two tasks with one id; there is one, and there are not too many. `refuse` takes the place of the task."""
    if not tasks:
        refuse(0, "tasks", "there is no task")
    if len(tasks) > MOST_TASKS:
        refuse(MOST_TASKS, "tasks", f"at most {MOST_TASKS} are allowed, not {len(tasks)}")
    seen: set[str] = set()
    for place, task in enumerate(tasks):
        if task.id in seen:
            refuse(place, "id", f"{task.id!r} is the id of an earlier task")
        seen.add(task.id)


def _expected(grader: str, value: Any, refuse: Refuse) -> Any:
    if value is None or value == "":
        refuse("expected", "it is missing")
    if grader == "number":
        if not is_number(value):
            refuse("expected", f"the grader `number` needs a number, not {value!r}")
        return float(value)
    if grader == "schema":
        if not isinstance(value, Mapping):
            refuse("expected", "the grader `schema` needs a JSON Schema, which is an object")
        try:
            Draft202012Validator.check_schema(dict(value))
        except SchemaError as error:
            refuse("expected", f"this is no JSON Schema: {error.message}"[:300])
        return dict(value)
    if grader == "contains":
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(one, str | int | float) and str(one).strip() for one in values):
            refuse("expected", "the grader `contains` needs a text or a list of texts")
        return [str(one) for one in values]
    if isinstance(value, list | Mapping):
        refuse("expected", f"the grader `{grader}` needs a text")
    return str(value)


def _fault(raw: Any, refuse: Refuse) -> Fault:
    if not isinstance(raw, Mapping):
        refuse("fault", "it is an object with `kind` and, if you like, `tool`, `times`, `text`")
    _known(raw, ("kind", "tool", "times", "text"), "fault.", refuse)
    kind, times = raw.get("kind"), raw.get("times", 1)
    if kind not in FAULTS:
        refuse("fault.kind", f"it must be one of {', '.join(FAULTS)}, not {kind!r}")
    if times == "always":
        times = None
    elif isinstance(times, bool) or not isinstance(times, int) or times < 1:
        refuse("fault.times", f"it must be a whole number from 1 or `always`, not {times!r}")
    text = str(raw.get("text") or "")
    if kind == "misleading" and not text.strip():
        refuse("fault.text", "a misleading result needs the text that misleads")
    return Fault(kind, str(raw.get("tool") or ""), times, text)


def _script(raw: Any, refuse: Refuse) -> Script:
    if not isinstance(raw, Mapping):
        refuse("script", "it is an object with `calls` and `answer`")
    _known(raw, ("calls", "answer"), "script.", refuse)
    calls = raw.get("calls") or []
    if not isinstance(calls, list):
        refuse("script.calls", "it is a list of calls")
    read = []
    for place, call in enumerate(calls, 1):
        if not isinstance(call, Mapping) or not isinstance(call.get("arguments", {}), Mapping):
            refuse("script.calls", f"call {place} is an object with `tool` and `arguments`")
        _known(call, ("tool", "arguments", "cell"), "script.calls.", refuse)
        cell = call.get("cell", -1)
        if isinstance(cell, bool) or not isinstance(cell, int):
            refuse("script.calls.cell", "it is the number of a cell: 0 for the first, -1 for the last")
        read.append(ScriptedCall(_text(call, "tool", "script.calls.", refuse), call.get("arguments") or {}, cell))
    return Script(read, _text(raw, "answer", "script.", refuse))


def _known(raw: Mapping[str, Any], names: Sequence[str], place: str, refuse: Refuse) -> None:
    for name in raw:
        if name not in names:
            refuse(f"{place}{name}", f"there is no such field here; there are {', '.join(names)}")


def _text(raw: Mapping[str, Any], name: str, place: str, refuse: Refuse) -> str:
    value = raw.get(name)
    if value is None or value == "":
        refuse(f"{place}{name}", "it is missing")
    if not isinstance(value, str):
        refuse(f"{place}{name}", f"it must be a text, not {value!r}; put it into quotes")
    return value.strip()


def is_number(value: Any) -> bool:
    """Whether it is a number, and one that a float can be."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
