"""ReWOO: one call plans all tool calls, code makes them, one call words the answer from their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from .errors import PlanError
from .journal import EffectClass
from .limits import Spent
from .messages import Message, ToolCall, Usage
from .placeholders import Placeholders, json_value, put_at
from .plan_prompts import SOLVER
from .planned import PlannedAgent
from .planned_run import PlannedRun, Worker
from .planning import Planner
from .plans import Plan, PlanStep, StepOutcome
from .registry import ToolRegistry
from .results import AgentResult, StepResult, tool_steps
from .scheduler import Done
from .tool_batch import ToolBatch
from .tools import Tool, observation_for_model

RETRIES = 2


class ReWOOAgent(PlannedAgent):
    """For requests whose calls can all be named in advance.

    `on_error`: a failed step is missing evidence for the answer (`to_solver`), is tried twice more (`retry`, never with
    an irreversible effect), or ends the work (`stop`). After failed evidence at most `max_replans` new plans are made;
    what succeeded is not run again.
    """

    kind = "rewoo"

    def __init__(
        self,
        *args: Any,
        on_error: Literal["to_solver", "retry", "stop"] = "to_solver",
        max_replans: int = 1,
        undeclared: Literal["reject", "add"] = "reject",
        concurrency: int = 8,
        **options: Any,
    ) -> None:
        super().__init__(*args, concurrency=concurrency, **options)
        if on_error not in ("to_solver", "retry", "stop"):
            raise ValueError(f"on_error is to_solver, retry or stop, not {on_error!r}")
        self.on_error = on_error
        self.max_replans = max_replans
        self.undeclared = undeclared

    def planner(self, registry: ToolRegistry | None = None) -> Planner:
        planner = super().planner(registry)
        planner.undeclared = self.undeclared
        return planner

    async def _carry_out(self, run: PlannedRun) -> AgentResult:
        plan = await run.make_plan()
        while True:
            worker = _Worker(self, run, plan)
            await run.execute(plan, worker)
            if self.on_error == "stop" and worker.failed:
                text = "\n\n".join(f"{step.id} {step.task}: {outcome.message}" for step, outcome in plan.missing)
                return await run.say(f"The work was stopped, because a step failed.\n\n{text}", "plan_failed", text)
            if not plan.missing or run.limit() or plan.version > self.max_replans:
                break
            following = await run.next_plan(_why(plan, heard=bool(len(run.interrupts))))
            if following is None:
                break
            plan = following
        limit = run.limit_reached(ignoring="model_calls")
        return await run.answer(SOLVER, f"limit:{limit}" if limit else "final_answer")


class _Worker(Worker):
    """Makes the calls of one plan, without a model."""

    def __init__(self, agent: ReWOOAgent, run: PlannedRun, plan: Plan) -> None:
        self.failed = False
        self._agent = agent
        self._run = run
        self._plan = plan
        self._placeholders = Placeholders([*plan.outcomes, *(step.id for step in plan.steps)])
        self._scope = run.scope.child(f"plan/{plan.version}")
        self._batch = ToolBatch(run.registry, run.gate(), self._scope, run.spent, agent.time)

    def why_not(self, step: PlanStep) -> tuple[str, str] | None:
        if self._agent.on_error == "stop" and self.failed:
            return "stopped", "not run, because another step failed"
        if len(self._run.interrupts) and self._plan.version <= self._agent.max_replans:
            return "interrupted", "not run, because the user said something new"
        return self._run.limit(ignoring="model_calls")

    def after(self, step: PlanStep, outcome: StepOutcome) -> None:
        self.failed = self.failed or not outcome.is_ok

    async def work(self, step: PlanStep, results: Mapping[str, StepOutcome], spent: Spent) -> Done:
        tool = self._run.registry.get(step.tool_name or "")
        if tool is None:
            raise PlanError("plan_unknown_tool", (step.id,))
        batch = replace(self._batch, scope=self._scope.of_step("", step.id), spent=spent)
        arguments = bound_arguments(step, results, tool, self._placeholders)
        may_repeat = tool.effect_of(arguments) is not EffectClass.ONCE
        tries = 1 + RETRIES if self._agent.on_error == "retry" and may_repeat else 1
        made: list[StepResult] = []
        messages: list[Message] = []
        for attempt in range(tries):
            call = ToolCall(f"{step.id}.{attempt + 1}", tool.name, arguments)
            result = await self._call(batch, step.position, attempt, call)
            made += tool_steps(step.position, step.task, [call], [result])
            messages += [Message.assistant("", [call]), Message.tool(call.id, observation_for_model(result))]
            outcome = outcome_of(result)
            if outcome.status not in ("error", "timeout") or result.get("not_run"):
                break
        return Done(outcome, made, messages)

    async def _call(self, batch: ToolBatch, position: int, attempt: int, call: ToolCall) -> dict[str, Any]:
        """One call within the limit on calls, which counts those that started."""
        refusal = None
        known = batch.scope.recorded(f"{position}/tool/{attempt}")
        if not known and not batch.spent.reserve_tool_calls(1):
            refusal = f"not run: the limit of {self._agent.limits.tool_calls} tool calls of this run is reached"
        result = await batch.one(position, attempt, call, refusal)
        if known and not result.get("not_run"):
            batch.spent.add(Usage(), 0, tool_calls=1)
        return result


def bound_arguments(
    step: PlanStep, results: Mapping[str, StepOutcome], tool: Tool, placeholders: Placeholders
) -> dict[str, Any]:
    """The arguments with results in them. A whole one is text, or what it says as JSON where only that is valid."""
    texts = {id: outcome.value for id, outcome in results.items()}
    arguments: dict[str, Any] = placeholders.fill(dict(step.tool_args), texts)
    whole = placeholders.whole(dict(step.tool_args))
    for fault in list(tool.argument_errors(arguments)) if whole else ():
        path = tuple(fault.absolute_path)
        if path in whole:
            try:
                arguments = put_at(arguments, path, json_value(texts[whole[path]]))
            except (ValueError, RecursionError):
                continue  # the call is refused, with the words of the schema
    return arguments


def outcome_of(result: Mapping[str, Any]) -> StepOutcome:
    """What a recorded call came to."""
    content = result["content"]
    if not result["is_error"]:
        return StepOutcome("ok", content)
    if result.get("not_run") == "invalid":
        return StepOutcome("error", code="plan_bad_arguments", message=content)
    if result.get("not_run"):
        return StepOutcome("denied", code="denied" if content.startswith("denied") else "limit", message=content)
    if content.startswith("TimeoutError: no result after"):
        return StepOutcome("timeout", code="timeout", message=content)
    return StepOutcome("error", code="tool_failed", message=content)


def _why(plan: Plan, *, heard: bool) -> str:
    if heard or any(outcome.code == "interrupted" for _, outcome in plan.missing):
        return "the user said something new"
    failed = [f"{step.id} ({outcome.status})" for step, outcome in plan.missing]
    return f"there is no result of {', '.join(failed)}"
