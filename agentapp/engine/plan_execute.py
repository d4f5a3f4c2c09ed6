"""Plan-and-Execute: goals in order, each worked on by a ReAct agent, and a report at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from .errors import PlanError
from .interrupts import MARKER
from .limits import Spent
from .messages import Message
from .plan_prompts import REPORTER, step_result, step_text, with_images
from .planned import PlannedAgent
from .planned_run import PlannedRun, Worker
from .plans import Plan, PlanStep, StepOutcome
from .react import ReActAgent
from .results import AgentResult
from .scheduler import Done

# A reason for a new plan after this step, or nothing.
ReplanRule = Callable[[PlanStep, StepOutcome], str | bool | None]
# Each replan makes at least one step; this ends a rule that is never satisfied.
MAX_REPLANS = 5
DIGEST_CHARS = 2_000


class PlanExecuteAgent(PlannedAgent):
    """For long goals. Each step sees a digest of the results before it, and none of their inner messages.

    `replan` is asked after each step whether the rest is to be planned anew, and why; without it later goals stay as
    they are. `on_error`: after a failed step the work goes on (`go_on`), is planned anew (`replan`) or ends (`stop`).
    """

    kind = "plan_execute"

    def __init__(
        self,
        *args: Any,
        max_steps: int = 8,
        replan: ReplanRule | None = None,
        on_error: Literal["go_on", "replan", "stop"] = "go_on",
        **options: Any,
    ) -> None:
        super().__init__(*args, max_steps=max_steps, **options)
        if on_error not in ("go_on", "replan", "stop"):
            raise ValueError(f"on_error is go_on, replan or stop, not {on_error!r}")
        self.concurrency = 1
        self.replan = replan
        self.on_error = on_error

    async def _carry_out(self, run: PlannedRun) -> AgentResult:
        plan = await run.make_plan()
        while True:
            worker = _Worker(self, run, plan)
            await run.execute(plan, worker)
            if worker.stop:
                text = f"The work was stopped, because a step failed.\n\n{worker.stop}"
                return await run.say(text, "plan_failed", worker.stop)
            if not worker.reason or run.limit():
                break
            try:
                following = await run.make_plan(worker.reason)
            except PlanError:
                break
            for step in worker.replanned:  # the new plan is in their place
                del plan.outcomes[step.id]
            if not following.steps:
                break
            plan = following
        limit = run.limit_reached(ignoring="model_calls")
        return await run.answer(REPORTER, f"limit:{limit}" if limit else "final_answer")


class _Worker(Worker):
    """Works on the goals of one plan, one after the other."""

    def __init__(self, agent: PlanExecuteAgent, run: PlannedRun, plan: Plan) -> None:
        self.reason = ""
        self.stop = ""
        self.replanned: list[PlanStep] = []
        self._agent = agent
        self._run = run
        self._plan = plan
        self._gate = run.gate()

    def why_not(self, step: PlanStep) -> tuple[str, str] | None:
        if self.stop:
            return "stopped", "not run, because another step failed"
        if self.reason:
            return "replanned", f"a new plan takes its place: {self.reason}"
        return self._run.limit()

    def after(self, step: PlanStep, outcome: StepOutcome) -> None:
        if outcome.code == "replanned":
            self.replanned.append(step)
            return
        if self.reason or self.stop or outcome.status == "skipped":
            return
        if not outcome.is_ok and self._agent.on_error == "stop":
            self.stop = f"{step.id} {step.task}: {outcome.message}"
        elif self._plan.version <= MAX_REPLANS:
            self.reason = self._wish(step, outcome)

    def _wish(self, step: PlanStep, outcome: StepOutcome) -> str:
        wish = self._agent.replan(step, outcome) if self._agent.replan else None
        if not wish and not outcome.is_ok and self._agent.on_error == "replan":
            wish = f"step {step.id} failed: {outcome.message}"
        return f"the result of step {step.id} asks for it" if wish is True else str(wish or "")[:500]

    async def work(self, step: PlanStep, results: Mapping[str, StepOutcome], spent: Spent) -> Done:
        run = self._run
        known = [Message.user(step_result(*one, DIGEST_CHARS)) for one in self._plan.everything if one[0].id != step.id]
        request = with_images(run.query, step_text(run.query, step, run.heard))
        options = {
            **self._agent._options,
            "gate": self._gate,
            "select_above": len(run.registry),
            "stream_direct": False,
        }
        agent = ReActAgent(self._agent.model, run.registry, **options)
        scope = run.scope.child(f"plan/{self._plan.version}").of_step(str(step.position), step.id)
        result = await agent._work(request, known, scope, run.interrupts, spent)
        run.heard += heard_in(result.messages)
        return done_by(result)


def done_by(result: AgentResult) -> Done:
    """What an agent's run means for its step. One that met a limit has answered with what it had."""
    if result.stop_reason == "final_answer" or result.stop_reason.startswith("limit:"):
        outcome = StepOutcome("ok", result.answer, code=result.stop_reason.removeprefix("final_answer"))
    else:
        outcome = StepOutcome("error", code=result.stop_reason, message=result.answer)
    return Done(outcome, result.tool_steps, result.messages)


def heard_in(messages: list[Message]) -> list[str]:
    """What a user said to an agent while it worked."""
    said = [m.text for m in messages if m.role == "user" and m.pinned and m.text.startswith(MARKER)]
    return [text.removeprefix(MARKER).removeprefix(": ") for text in said]
