"""Planners: one structured call that names the steps, and one more with the fault of a plan that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from .errors import PlanError, StructuredOutputError
from .journal import Journal
from .messages import Content, Message
from .models import ChatModel
from .placeholders import Placeholders, json_value
from .plan_check import validate_plan
from .plan_prompts import planner_system, request_text, rounds_text, schema_of_steps, with_images
from .plans import Plan, PlanStep, StepOutcome, read_step
from .prompts import describe_tools
from .registry import ToolRegistry
from .scope import JournaledModel, journaled
from .structured import structured_llm_call
from .tools import Tool, canonical_arguments

ATTEMPTS = 2


class Planner:
    """Makes plans of one kind (rewoo, plan_execute, dag) and runs nothing."""

    def __init__(
        self,
        model: ChatModel,
        tools: Iterable[Tool] = (),
        *,
        kind: str,
        max_steps: int = 12,
        instructions: str = "",
        undeclared: Literal["reject", "add"] = "reject",
    ) -> None:
        self.model = model
        self.registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self.kind = kind
        self.max_steps = max_steps
        self.instructions = instructions
        self.undeclared = undeclared

    async def plan(
        self,
        query: Content,
        *,
        talk: str = "",
        heard: Sequence[str] = (),
        earlier: Sequence[Plan] = (),
        reason: str = "",
        model: ChatModel | None = None,
        journal: Journal | None = None,
        scope: str = "plan",
    ) -> Plan:
        """A plan that passed `validate_plan`; only one that follows `earlier` ones may be empty.

        `talk` is the conversation so far, `heard` what the user said meanwhile, `reason` why a new plan is made.
        Raises PlanError with the code of the fault, or `plan_failed` when there was no plan to read.
        """
        model = model or self.model
        bound = model if isinstance(model, JournaledModel) else journaled(model, journal, scope, "planning")
        before = [f"{rounds_text(earlier)}\n\nWhy a new plan is needed: {reason}"] if earlier else []
        text = request_text(query, talk, heard, *before)
        messages = [Message.system(self._system(renews=bool(earlier))), Message.user(with_images(query, text))]
        for attempt in range(1, ATTEMPTS + 1):
            raw = await self._ask(bound, messages)
            try:
                return self._checked(raw, earlier)
            except PlanError as error:
                if attempt == ATTEMPTS:
                    raise
                fault = f"That plan cannot be used ({error.code}): {error.message}. Send it again, whole and repaired."
                messages = [*messages, Message.assistant(_shown(raw)), Message.user(fault)]
        raise AssertionError("unreachable")

    def _system(self, *, renews: bool) -> str:
        if self.kind == "rewoo":
            tools = describe_tools(self.registry)
        else:
            tools = f"Tools that the agents have:\n{self.registry.catalog()}" if len(self.registry) else ""
        return planner_system(self.kind, self.max_steps, tools, self.instructions, renews=renews)

    async def _ask(self, model: JournaledModel, messages: Sequence[Message]) -> list[Any]:
        schema = schema_of_steps(self.kind, self.registry.names)
        try:
            result = await structured_llm_call(
                model, messages, schema, function_name="plan", parse_fn=lambda data: {"steps": read_steps(data)}
            )
        except StructuredOutputError as error:
            raise PlanError("plan_failed", (), str(error)) from None
        return list(result.value["steps"])

    def _checked(self, raw: Sequence[Any], earlier: Sequence[Plan]) -> Plan:
        version = len(earlier) + 1
        if not earlier:
            return Plan(self.kind, version, _listed(self._valid(raw, ())))
        if not raw:
            return Plan(self.kind, version, [], *_carried(earlier))
        if len(raw) > self.max_steps:  # however many of them are old ones
            raise PlanError(
                "plan_too_large", (), f"the plan has {len(raw)} steps, at most {self.max_steps} are allowed"
            )
        new = _only_new(raw, earlier)
        outcomes, carried = _carried(earlier)
        steps = _listed(self._valid(new, outcomes)) if new else []
        return Plan(self.kind, version, steps, outcomes, carried)

    def _valid(self, raw: Sequence[Any], earlier: Iterable[str]) -> list[PlanStep]:
        calls_only = self.kind == "rewoo"
        if not calls_only:  # a goal names no call, whatever its planner sent
            raw = [replace(read_step(one, n), tool_name=None, tool_args={}) for n, one in enumerate(raw, 1)]
        return validate_plan(
            raw,
            self.registry,
            max_steps=self.max_steps,
            earlier=list(earlier),
            calls_only=calls_only,
            undeclared=self.undeclared,
        )


def read_steps(data: Mapping[str, Any]) -> list[Any]:
    """The steps in a planner's reply: a list, its text, a single step, or a step in place of the plan.

    Raises ValueError for anything else.
    """
    steps = data.get("steps")
    if "steps" not in data and "task" in data:
        steps = data
    if isinstance(steps, str):
        steps = json_value(steps)
    if isinstance(steps, Mapping):
        steps = [steps]
    if not isinstance(steps, list):
        raise ValueError("no steps")
    return [json_value(step) if isinstance(step, str) else step for step in steps]


def _listed(steps: Iterable[PlanStep]) -> list[PlanStep]:
    return sorted(steps, key=lambda step: step.position)


def _shown(raw: Sequence[Any]) -> str:
    return json.dumps({"steps": raw}, ensure_ascii=False, default=str)[:20_000]


def _carried(earlier: Sequence[Plan]) -> tuple[dict[str, StepOutcome], list[PlanStep]]:
    """Results that count on, and their steps."""
    steps = [step for plan in earlier for step in plan.steps if step.id in plan.outcomes]
    outcomes = {step.id: plan.outcomes[step.id] for plan in earlier for step in plan.steps if step.id in plan.outcomes}
    kept = [step for step in steps if outcomes[step.id].is_ok]
    return {step.id: outcomes[step.id] for step in kept}, kept


def _only_new(raw: Sequence[Any], earlier: Sequence[Plan]) -> list[PlanStep]:
    """The steps of a new plan that have not succeeded yet, with ids that no earlier one has had."""
    steps = [read_step(one, position) for position, one in enumerate(raw, 1)]
    _, kept = _carried(earlier)
    taken = {step.id.casefold() for plan in earlier for step in plan.steps}
    taken |= {step.id.casefold() for step in steps}
    placeholders = Placeholders([*(step.id for plan in earlier for step in plan.steps), *(step.id for step in steps)])
    own = {step.id for step in steps}
    names: dict[str, str] = {}
    new = []
    for step in steps:
        refers_to_new = any(names.get(id) != id for id in placeholders.references(step.tool_args) if id in own)
        old = None if refers_to_new else next((one for one in kept if _is_same(one, step)), None)
        if old is not None:
            names[step.id] = old.id
            continue
        new.append(step)
        if any(step.id.casefold() == one.id.casefold() for plan in earlier for one in plan.steps):
            names[step.id] = _free_id(step.id, taken, len(earlier) + 1)
    return [
        replace(
            step,
            id=names.get(step.id, step.id),
            tool_args=placeholders.renamed(step.tool_args, names),
            depends_on=tuple(names.get(id, id) for id in step.depends_on),
        )
        for step in new
    ]


def _is_same(old: PlanStep, new: PlanStep) -> bool:
    """The same call, or a goal of the same id in the same words."""
    if old.is_call or new.is_call:
        return old.tool_name == new.tool_name and _asked(old) == _asked(new)
    return (old.id, old.task) == (new.id, new.task)


def _asked(step: PlanStep) -> str:
    return canonical_arguments(dict(step.tool_args))


def _free_id(id: str, taken: set[str], version: int) -> str:
    letters = id.rstrip("0123456789")
    if len(letters) < len(id):
        number = int(id[len(letters) :])
        while f"{letters}{number}".casefold() in taken:
            number += 1
        free = f"{letters}{number}"
    else:
        free = f"{id}_v{version}"
    taken.add(free.casefold())
    return free
