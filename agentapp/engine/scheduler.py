"""Runs the steps of a plan: each as soon as what it depends on is there, a bounded number side by side.

A step leaves two records around what it does, its start and its end. So a run that is taken up again knows which steps
were over and how; what a finished step did is read from its own records.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import EngineError, IncompleteStream, ModelError, ModelUnavailable, RunSuspended, UnknownOutcome
from .events import plan_step, send
from .journal import CallKind, giving
from .limits import Spent
from .messages import Message, Usage
from .plans import Plan, PlanStep, StepOutcome
from .results import StepResult
from .scope import Scope

# A step that raises one of these is not over: the run leaves, and comes back to it.
_HELD = (RunSuspended, UnknownOutcome, ModelUnavailable, IncompleteStream)
_SHOWN = {"ok": "done", "skipped": "skipped"}


@dataclass(frozen=True, slots=True)
class Done:
    """What a step came to, the calls it made, and the messages of its agent."""

    outcome: StepOutcome
    steps: Sequence[StepResult] = ()
    messages: Sequence[Message] = ()


Work = Callable[[PlanStep, Mapping[str, StepOutcome], Spent], Awaitable[Done]]
# Code and message of the reason for which a step must not start.
WhyNot = Callable[[PlanStep], tuple[str, str] | None]


@dataclass(slots=True)
class Scheduler:
    """Runs one version of a plan and fills in its outcomes.

    `work` is given a step, the outcomes of its dependencies and an account; `why_not` may keep a step from starting,
    `after` hears of each outcome. `timeout` is in seconds.
    """

    plan: Plan
    scope: Scope
    work: Work
    spent: Spent
    time: Callable[[], float]
    concurrency: int
    timeout: float
    why_not: WhyNot = lambda _: None
    after: Callable[[PlanStep, StepOutcome], None] = lambda step, outcome: None
    done: dict[str, Done] = field(default_factory=dict)
    _running: dict[asyncio.Task[Done], PlanStep] = field(default_factory=dict)
    _begun_at: float = 0.0
    _until_now: float = 0.0

    async def run(self) -> None:
        """Every step has an outcome in the end.

        `RunSuspended`, `UnknownOutcome` and errors of a model that may come back leave when all that can run has run;
        a fault of ours ends the others first.
        """
        self._begun_at = self.time()
        queue = _Queue(self.plan)
        held: list[BaseException] = []
        try:
            while queue.ready or self._running:
                await self._start(queue)
                if not self._running:
                    continue
                over, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                for task in sorted(over, key=lambda task: self._running[task].position):
                    step = self._running.pop(task)
                    try:
                        self._settle(step, task.result(), queue)
                    except _HELD as error:
                        held.append(error)
        finally:
            await self._end_running()
        self.spent.seconds += self._until_now
        if held:
            raise min(held, key=_precedence)

    async def _start(self, queue: _Queue) -> None:
        while queue.ready and len(self._running) < self.concurrency:
            step = queue.pop()
            if (why := self._reason_to_skip(step)) is None:
                self._running[asyncio.create_task(self._step(step))] = step
            else:
                outcome = StepOutcome("skipped", code=why[0], message=why[1])
                self._settle(step, await self._end(step, Done(outcome), {}), queue)

    def _settle(self, step: PlanStep, done: Done, queue: _Queue) -> None:
        self.done[step.id] = done
        self.plan.outcomes[step.id] = done.outcome
        self.after(step, done.outcome)
        queue.finished(step)

    def _reason_to_skip(self, step: PlanStep) -> tuple[str, str] | None:
        if self.scope.recorded(f"{step.position}/begun") or self.scope.recorded(f"{step.position}/over"):
            return None
        failed = [name for name in step.depends_on if not self.plan.outcomes[name].is_ok]
        if failed:
            return "dependency_failed", f"not run, because {', '.join(failed)} did not succeed"
        return self.why_not(step)

    async def _step(self, step: PlanStep) -> Done:
        if not self.scope.recorded(f"{step.position}/over") or self.scope.recorded(f"{step.position}/begun"):
            await self._record(f"{step.position}/begun", step, {}, "running")
        begun, spent = self.time(), self.spent.fork()
        if self.scope.recorded(f"{step.position}/over"):
            return await self._again(step, spent)
        broke_off = {"broke_off": True}
        try:
            async with asyncio.timeout(self.timeout) as deadline:
                done = await self._work_on(step, spent)
            broke_off = {}
        except _HELD:
            raise
        except Exception as error:
            if isinstance(error, EngineError) and not isinstance(error, ModelError):
                raise
            if isinstance(error, TimeoutError) and deadline.expired():
                done = Done(StepOutcome("timeout", code="timeout", message=f"no result after {self.timeout:g} s"))
            else:
                text = f"{type(error).__name__}: {error}"[:2_000]
                done = Done(StepOutcome("error", code="step_failed", message=text))
        used = {"usage": spent.usage.to_dict(), "cost": spent.cost, "tool_calls": spent.tool_calls}
        elapsed = round(max(0.0, self.time() - begun), 6)
        return await self._end(step, done, {"elapsed": elapsed, **(broke_off and {**broke_off, "spent": used})})

    async def _work_on(self, step: PlanStep, spent: Spent) -> Done:
        return await self.work(step, {name: self.plan.outcomes[name] for name in step.depends_on}, spent)

    async def _again(self, step: PlanStep, spent: Spent) -> Done:
        """A step that is over: what it did is on record, unless it broke off."""
        record = await self._record(f"{step.position}/over", step, {}, "")
        if "elapsed" not in record or record.get("broke_off"):
            if used := record.get("spent"):
                self.spent.add(Usage(**used["usage"]), used["cost"], tool_calls=used["tool_calls"])
            return self._ended(Done(StepOutcome(record["status"], "", record["code"], record["message"])), record)
        return self._ended(await self._work_on(step, spent), record)

    async def _end(self, step: PlanStep, done: Done, details: dict[str, Any]) -> Done:
        outcome = done.outcome
        at = self._until_now + max(0.0, self.time() - self._begun_at) if details else 0.0
        data = {"status": outcome.status, "code": outcome.code, "message": outcome.message, "at": round(at, 6)}
        told = {"result": outcome.value} if outcome.is_ok else {"outcome": outcome.status, "message": outcome.message}
        if "elapsed" in details:
            told["elapsed"] = details["elapsed"]
        shown = _SHOWN.get(outcome.status, "failed")
        record = await self._record(f"{step.position}/over", step, {**data, **details}, shown, **told)
        return self._ended(done, record)

    def _ended(self, done: Done, record: Mapping[str, Any]) -> Done:
        if record["at"] > self._until_now:
            self._until_now, self._begun_at = record["at"], self.time()
        return replace(done, outcome=replace(done.outcome, elapsed=record.get("elapsed", 0.0)))

    async def _record(
        self, name: str, step: PlanStep, data: dict[str, Any], status: str, **told: Any
    ) -> dict[str, Any]:
        event = plan_step(self.plan.version, step.id, status, **told)
        request = {"step_id": step.id, "task": step.task}
        return await self.scope.call(name, CallKind.PUBLISH, request, giving(data), finished=lambda _: (event,))

    async def _end_running(self) -> None:
        """Steps that still run end with the run, and none of them seems to go on."""
        if not self._running:
            return
        for task in self._running:
            task.cancel()
        await asyncio.wait(self._running)
        for task, step in self._running.items():
            _ = task.cancelled() or task.exception()  # the first of them has been raised
            await send(self.scope.emit, plan_step(self.plan.version, step.id, "skipped", message="stopped"))
        self._running.clear()


class _Queue:
    """Steps whose dependencies are over, in the plan's order."""

    def __init__(self, plan: Plan) -> None:
        own = {step.id for step in plan.steps}
        self._steps = {step.position: step for step in plan.steps}
        self._open = {step.id: sum(name in own for name in step.depends_on) for step in plan.steps}
        self._dependents: dict[str, list[PlanStep]] = {}
        for step in plan.steps:
            for name in step.depends_on:
                self._dependents.setdefault(name, []).append(step)
        self.ready = [step.position for step in plan.steps if not self._open[step.id]]
        heapq.heapify(self.ready)

    def pop(self) -> PlanStep:
        return self._steps[heapq.heappop(self.ready)]

    def finished(self, step: PlanStep) -> None:
        for dependent in self._dependents.get(step.id, ()):
            self._open[dependent.id] -= 1
            if not self._open[dependent.id]:
                heapq.heappush(self.ready, dependent.position)


def _precedence(error: BaseException) -> int:
    """Doubt about an effect first, then models that are away, then waiting."""
    return 0 if isinstance(error, UnknownOutcome) else 2 if isinstance(error, RunSuspended) else 1
