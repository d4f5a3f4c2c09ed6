"""Plans: steps that are named before any of them runs, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import PlanError
from .placeholders import json_value, normal_id

Status = Literal["ok", "error", "timeout", "denied", "skipped"]
MODEL_HINTS = ("fast", "reasoning")


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A call that is ready but for the results it waits for (`tool_name`), or a goal for an agent.

    `position` counts from 1 in the order in which the planner named the steps. `added` are those of `depends_on` that
    the planner referred to without naming them there.
    """

    id: str
    task: str
    tool_name: str | None = None
    tool_args: Mapping[str, Any] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    tool_hint: str = ""
    model_hint: str = ""
    position: int = field(default=0, compare=False)
    added: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_call(self) -> bool:
        return self.tool_name is not None

    def to_dict(self) -> dict[str, Any]:
        """The form of `plan` events and records."""
        data: dict[str, Any] = {"id": self.id, "task": self.task, "depends_on": list(self.depends_on)}
        if self.tool_name is not None:
            data |= {"tool_name": self.tool_name, "tool_args": dict(self.tool_args)}
        for name in ("tool_hint", "model_hint"):
            if value := getattr(self, name):
                data[name] = value
        if self.added:
            data["added"] = list(self.added)
        return data


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What became of a step. A text that a tool returned is data, whatever it says: `status` tells what happened.

    `code` is machine-readable, `message` is for people and models; both are empty when all went well. `elapsed` is
    in seconds.
    """

    status: Status
    value: str = ""
    code: str = ""
    message: str = ""
    elapsed: float = field(default=0.0, compare=False)

    @property
    def is_ok(self) -> bool:
        return self.status == "ok"

    def to_dict(self) -> dict[str, Any]:
        return {"status": self.status, "code": self.code, "message": self.message, "value": self.value}


@dataclass(slots=True)
class Plan:
    """One version of a plan: its steps in the planner's order, and the outcomes by id as far as there are any.

    `carried` are steps of earlier versions whose results count here too.
    """

    kind: str
    version: int
    steps: list[PlanStep]
    outcomes: dict[str, StepOutcome] = field(default_factory=dict)
    carried: list[PlanStep] = field(default_factory=list)

    def __iter__(self) -> Iterator[PlanStep]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: int) -> PlanStep:
        """The step at a place, counted from 0. Raises PlanError beyond the ends."""
        if not self.steps:
            raise PlanError("plan_empty", (), "the plan has no steps")
        if not 0 <= index < len(self.steps):
            raise PlanError("plan_unknown_step", (), f"the plan has {len(self.steps)} steps, there is none at {index}")
        return self.steps[index]

    @property
    def everything(self) -> list[tuple[PlanStep, StepOutcome]]:
        """All steps that have an outcome, those of earlier versions first."""
        return [(step, self.outcomes[step.id]) for step in [*self.carried, *self.steps] if step.id in self.outcomes]

    @property
    def missing(self) -> list[tuple[PlanStep, StepOutcome]]:
        return [(step, outcome) for step, outcome in self.everything if not outcome.is_ok]


def read_step(raw: Any, position: int) -> PlanStep:
    """A step from what a planner sent. Raises PlanError."""
    if isinstance(raw, PlanStep):
        raw = {**raw.to_dict(), "tool_args": raw.tool_args}
    if not isinstance(raw, Mapping):
        raise PlanError("plan_failed", (), f"step {position} is no object")
    id = normal_id(raw.get("id", f"E{position}"))
    task = raw.get("task")
    if not isinstance(task, str) or not task.strip():
        raise PlanError("plan_blank_step", (id,), f"step {id} has no description in `task`")
    arguments = raw.get("tool_args") or {}
    if isinstance(arguments, str):
        try:
            arguments = json_value(arguments)
        except (ValueError, RecursionError):
            arguments = None
    if not isinstance(arguments, Mapping):
        raise PlanError("plan_bad_arguments", (id,), f"`tool_args` of step {id} is no object")
    name, hint, model = (_text(raw.get(part)) for part in ("tool_name", "tool_hint", "model_hint"))
    return PlanStep(
        id,
        task.strip(),
        name or ("" if arguments else None),
        arguments,
        tuple(dict.fromkeys(normal_id(one) for one in _listed(raw.get("depends_on"), id))),
        hint,
        model if model in MODEL_HINTS else "",
        position,
    )


def _listed(value: Any, id: str) -> Sequence[Any]:
    if value is None:
        return ()
    if isinstance(value, str):
        return [part for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        raise PlanError("plan_failed", (id,), f"`depends_on` of step {id} is no list")
    return value


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
