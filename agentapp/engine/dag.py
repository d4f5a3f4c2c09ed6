"""DAG: agents work on a graph of steps, the result is judged, and the plan is made anew until the goal is reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .context import ContextGuard
from .events import phase
from .interrupts import InterruptQueue
from .limits import Spent
from .messages import Message
from .models import ChatModel, ModelRegistry
from .plan_analysis import Analysis, PlanAnalyzer
from .plan_execute import done_by
from .plan_prompts import REPORTER, missing_text, step_result, step_text, with_images
from .planned import PlannedAgent, guard_for_steps
from .planned_run import RESULT_CHARS, PlannedRun, Worker
from .planning import Planner
from .plans import Plan, PlanStep, StepOutcome
from .react import ReActAgent
from .registry import ToolRegistry
from .results import AgentResult
from .scheduler import Done
from .scope import JournaledModel
from .tokens import budget_for
from .tools import Tool


class DAGPlanner(Planner):
    """Makes graphs of goals. `plan()` works on its own too."""

    def __init__(self, model: ChatModel, tools: Iterable[Tool] = (), **options: Any) -> None:
        super().__init__(model, tools, kind="dag", **options)


class DAGExecutor:
    """Gives each step an agent of its own, with the model that its hint asks for."""

    def __init__(self, registry: ModelRegistry, tools: Iterable[Tool] = (), **options: Any) -> None:
        self.models = registry
        self.tools = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self._options = options

    def _resolve_agent(self, step: PlanStep) -> ReActAgent:
        """A fresh agent for a step, bound to the model of its role, or to the default where there is none."""
        try:
            model = self.models.get(step.model_hint) if step.model_hint else self.models.default
        except KeyError:
            model = self.models.default
        own = {**self._options, "select_above": len(self.tools), "stream_direct": False}
        if (guard := own.get("guard")) is not None:
            own["guard"] = guard_for_steps(guard, budget_for(model))
        return ReActAgent(model, self.tools, **own)


class DAGAgent(PlannedAgent):
    """For goals with parts that can be worked on side by side, and results that must be judged.

    At most `max_rounds` plans are made. A judgement that the goal is achieved ends them, and so does one that it is
    not with at least `stop_confidence`: another plan would not help.
    """

    kind = "dag"

    def __init__(
        self,
        registry: ModelRegistry,
        tools: Iterable[Tool] = (),
        *,
        max_rounds: int = 3,
        stop_confidence: float = 0.8,
        **options: Any,
    ) -> None:
        super().__init__(registry.default, tools, **options)
        self.models = registry
        self.max_rounds = max_rounds
        self.stop_confidence = stop_confidence
        if self.guard.compact_model is None and (small := _small(registry)) is not None:
            self.guard = ContextGuard(self.guard.budget, compact_model=small)

    def planner(self, registry: ToolRegistry | None = None) -> Planner:
        tools = self.registry if registry is None else registry
        return DAGPlanner(self.planner_model, tools, max_steps=self.max_steps, instructions=self.instructions)

    async def _carry_out(self, run: PlannedRun) -> AgentResult:
        plan = await run.make_plan()
        while True:
            await run.execute(plan, _Worker(self, run, plan, can_replan=plan.version < self.max_rounds))
            interrupted = any(outcome.code == "interrupted" for outcome in plan.outcomes.values())
            if run.limit():
                break
            analysis = None if interrupted else await self._analyse(run, plan)
            if plan.version >= self.max_rounds or (analysis and self._is_enough(analysis)):
                break
            reason = analysis.reasoning if analysis else "the user said something new"
            following = await run.next_plan(reason or "the goal was not achieved")
            if following is None:
                break
            plan = following
        limit = run.limit_reached(ignoring="model_calls")
        stop_reason = f"limit:{limit}" if limit else "final_answer"
        if not any(outcome.is_ok for _, outcome in plan.everything):
            return await run.say(
                f"Nothing could be found out for this request.{missing_text(plan.missing)}", stop_reason
            )
        return await run.answer(REPORTER, stop_reason)

    def _is_enough(self, analysis: Analysis) -> bool:
        return analysis.achieved or analysis.confidence >= self.stop_confidence

    async def _analyse(self, run: PlannedRun, plan: Plan) -> Analysis:
        analyzer, version = PlanAnalyzer(self.model), plan.version

        async def think(model: JournaledModel) -> dict[str, Any]:
            judged = await analyzer.analyze(run.query, plan, heard=run.heard, model=model)
            return judged.to_dict()

        record = await run.decide(
            f"analysis/{version}",
            self.model,
            "analysis",
            think,
            phase("analyzing", version=version),
            lambda made: () if "error" in made else (phase("analyzed", version=version, **made),),
        )
        return Analysis() if "error" in record else Analysis(**record)


class _Worker(Worker):
    def __init__(self, agent: DAGAgent, run: PlannedRun, plan: Plan, *, can_replan: bool) -> None:
        self._run = run
        self._plan = plan
        self._can_replan = can_replan
        options = agent.step_options(run.registry, run.gate())
        self._executor = DAGExecutor(agent.models, run.registry, **options)

    def why_not(self, step: PlanStep) -> tuple[str, str] | None:
        if self._can_replan and len(self._run.interrupts):
            return "interrupted", "not run, because the user said something new"
        return self._run.limit()

    async def work(self, step: PlanStep, results: Mapping[str, StepOutcome], spent: Spent) -> Done:
        run = self._run
        steps = {one.id: one for one in [*self._plan.carried, *self._plan.steps]}
        known = [Message.user(step_result(steps[id], outcome, RESULT_CHARS)) for id, outcome in results.items()]
        request = with_images(run.query, step_text(run.query, step))
        scope = run.scope.child(f"plan/{self._plan.version}").of_step(str(step.position), step.id)
        agent = self._executor._resolve_agent(step)
        return done_by(await agent._work(request, known, scope, InterruptQueue(), spent))


def _small(registry: ModelRegistry) -> ChatModel | None:
    try:
        return registry.get("fast")
    except KeyError:
        return None
