"""The judge of plans: everything that can be known before a step runs is known here."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from .errors import PlanError
from .placeholders import Placeholders
from .plans import PlanStep, read_step
from .registry import ToolRegistry
from .tools import Tool, canonical_arguments, is_finite

MAX_ARGUMENT_CHARS = 100_000
MAX_ARGUMENT_DEPTH = 20
# What is wrong with an object as a whole, whatever a placeholder in it will stand for.
_OF_THE_OBJECT = ("required", "additionalProperties", "unevaluatedProperties", "minProperties", "maxProperties")


def validate_plan(
    steps: Any,
    registry: ToolRegistry | Iterable[Tool] | None = None,
    *,
    max_steps: int,
    earlier: Collection[str] = (),
    calls_only: bool = False,
    undeclared: Literal["reject", "add"] = "reject",
) -> list[PlanStep]:
    """The steps in an order in which each comes after all that it depends on, otherwise as they were listed.

    Takes `PlanStep`s or objects as planners send them. `earlier` are ids whose results exist already. With
    `calls_only` a step has to name its tool. A placeholder whose step is not in `depends_on` is a fault, or with
    `undeclared="add"` it is put there, and stands in the step's `added`. Raises PlanError with the code of the first
    fault.
    """
    if not isinstance(registry, ToolRegistry):
        registry = ToolRegistry(registry or ())
    if not isinstance(steps, list | tuple):
        raise PlanError("plan_failed", (), f"a plan is a list of steps, not {type(steps).__name__}")
    if not steps:
        raise PlanError("plan_empty", (), "the plan has no steps")
    if len(steps) > max_steps:
        raise PlanError("plan_too_large", (), f"the plan has {len(steps)} steps, at most {max_steps} are allowed")
    read = [read_step(raw, position) for position, raw in enumerate(steps, 1)]
    read = _with_known_ids(read, earlier)
    placeholders = Placeholders([*earlier, *(step.id for step in read)])
    known = {step.id for step in read} | set(earlier)
    if undeclared == "add":
        read = [_with_references(step, placeholders, known) for step in read]
    ordered = _in_order(read)
    for step in ordered:
        if step.is_call or calls_only:
            try:
                _check_call(step, registry, placeholders, known)
            except (TypeError, ValueError, RecursionError) as error:  # what is no JSON value
                text = f"the arguments of step {step.id} cannot be read: {error}"
                raise PlanError("plan_bad_arguments", (step.id,), text) from None
    return ordered


def _with_known_ids(steps: Sequence[PlanStep], earlier: Collection[str]) -> list[PlanStep]:
    """The same with dependencies spelled as the ids are. Ids differ in more than case."""
    spelled = {id.casefold(): id for id in earlier}
    position_of: dict[str, int] = {}
    for step in steps:
        key = step.id.casefold()
        if key in position_of or key in spelled:
            places = f"at positions {position_of[key]} and {step.position}" if key in position_of else "already"
            raise PlanError("plan_duplicate_id", (step.id,), f"the id {step.id} is used {places}")
        position_of[key] = step.position
    spelled |= {step.id.casefold(): step.id for step in steps}
    checked = []
    for step in steps:
        for name in step.depends_on:
            if name.casefold() not in spelled:
                raise PlanError(
                    "plan_unknown_dependency", (step.id,), f"step {step.id} depends on {name}, which is no step"
                )
        depends_on = tuple(dict.fromkeys(spelled[name.casefold()] for name in step.depends_on))
        checked.append(step if depends_on == step.depends_on else replace(step, depends_on=depends_on))
    return checked


def _with_references(step: PlanStep, placeholders: Placeholders, known: Collection[str]) -> PlanStep:
    """The step with all that it refers to in `depends_on`. What no step has made is found later."""
    try:
        named = placeholders.references(step.tool_args)
    except RecursionError:
        return step
    added = tuple(id for id in named if id in known and id not in step.depends_on)
    return replace(step, depends_on=(*step.depends_on, *added), added=added) if added else step


def _in_order(steps: Sequence[PlanStep]) -> list[PlanStep]:
    by_id = {step.id: step for step in steps}
    open_ends = {step.id: sum(name in by_id for name in step.depends_on) for step in steps}
    dependents: dict[str, list[PlanStep]] = {step.id: [] for step in steps}
    for step in steps:
        for name in step.depends_on:
            if name in by_id:
                dependents[name].append(step)
    ready = [(step.position, step.id) for step in steps if not open_ends[step.id]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        step = by_id[heapq.heappop(ready)[1]]
        ordered.append(step)
        for dependent in dependents[step.id]:
            open_ends[dependent.id] -= 1
            if not open_ends[dependent.id]:
                heapq.heappush(ready, (dependent.position, dependent.id))
    if len(ordered) < len(steps):
        members = _in_cycles({id for id, count in open_ends.items() if count}, by_id)
        names = [step.id for step in steps if step.id in members]
        raise PlanError("plan_cycle", names, f"these steps wait for each other: {', '.join(names)}")
    return ordered


def _in_cycles(stuck: set[str], by_id: Mapping[str, PlanStep]) -> set[str]:
    """Of steps that can never start, those that something among them waits for."""
    while True:
        awaited = {name for id in stuck for name in by_id[id].depends_on if name in stuck}
        if awaited == stuck:
            return stuck
        stuck = awaited


def _check_call(step: PlanStep, registry: ToolRegistry, placeholders: Placeholders, known: Collection[str]) -> None:
    tool = registry.get(step.tool_name or "")
    if tool is None:
        names = ", ".join(registry.names) or "none"
        wanted = (step.tool_name or "")[:200]
        text = f"step {step.id} names the tool {wanted!r}, which does not exist here. Tools: {names}"
        raise PlanError("plan_unknown_tool", (step.id,), text)
    arguments = dict(step.tool_args)
    if _depth(arguments) > MAX_ARGUMENT_DEPTH or len(canonical_arguments(arguments)) > MAX_ARGUMENT_CHARS:
        raise PlanError("plan_too_large", (step.id,), f"the arguments of step {step.id} are too large")
    if placeholders.in_keys(arguments):
        text = f"in step {step.id} a placeholder is the name of an argument; it can only be a value"
        raise PlanError("plan_bad_arguments", (step.id,), text)
    for name in placeholders.references(arguments):
        if name not in known:
            text = f"step {step.id} refers to #{name}, which is no step"
            raise PlanError("plan_unknown_reference", (step.id,), text)
        if name not in step.depends_on:
            text = f"step {step.id} refers to #{name} without naming it in `depends_on`"
            raise PlanError("plan_undeclared_reference", (step.id,), text)
    if problem := _problem(arguments, tool, placeholders):
        raise PlanError("plan_bad_arguments", (step.id,), f"the arguments of step {step.id} are not valid: {problem}")


def _problem(arguments: dict[str, Any], tool: Tool, placeholders: Placeholders) -> str | None:
    """What is wrong with arguments already; what a placeholder will bring is judged when it has."""
    if not is_finite(arguments):
        return "they hold NaN or an infinity"
    for error in tool.argument_errors(arguments):
        if error.validator in _OF_THE_OBJECT or not placeholders.references(error.instance):
            place = error.json_path.removeprefix("$").lstrip(".")
            return f"{place}: {error.message}"[:500] if place else str(error.message)[:500]
    return None


def _depth(value: Any) -> int:
    """How deep lists and objects lie in each other; a little more than the most allowed is deep enough to know."""
    level, depth = [value], 0
    while level and depth <= MAX_ARGUMENT_DEPTH:
        inner = [part for part in level if isinstance(part, Mapping | list | tuple)]
        level = [x for part in inner for x in (part.values() if isinstance(part, Mapping) else part)]
        depth += bool(inner)
    return depth
