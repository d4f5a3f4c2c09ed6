"""One run of a planned loop: what it knows, decides, carries out and answers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .answer import Written, publish_answer, write_answer
from .context import ContextGuard
from .errors import EngineError, PlanError
from .events import Event, compact, inject, phase, plan_made
from .interrupts import Interrupt, InterruptQueue, images_of
from .journal import CallKind, EffectClass, giving
from .limits import Spent
from .messages import Content, Message, Usage
from .models import ChatModel
from .plan_prompts import answer_system, evidence_text, found_text, missing_text, request_text, with_images
from .plans import Plan, PlanStep, StepOutcome
from .results import AgentResult, StepResult
from .scheduler import Done, Scheduler
from .scope import JournaledModel, Scope
from .selection import select_tools
from .tokens import budget_for, estimate_tokens
from .tool_batch import Allow, Deny, Gate, ask
from .tools import Tool, canonical_arguments

if TYPE_CHECKING:
    from .planned import PlannedAgent

HISTORY_TOKENS, HISTORY_CHARS = 16_000, 20_000
RESULT_CHARS = 50_000
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


class Worker(ABC):
    """Works on the steps of one plan."""

    @abstractmethod
    async def work(self, step: PlanStep, results: Mapping[str, StepOutcome], spent: Spent) -> Done: ...

    @abstractmethod
    def why_not(self, step: PlanStep) -> tuple[str, str] | None:
        """Code and message of the reason for which this step must not start."""

    def after(self, step: PlanStep, outcome: StepOutcome) -> None:  # noqa: B027 (not every one cares)
        """Hears what became of a step."""


class PlannedRun:
    """State of one run. Everything in it follows from recorded results, so that a replay rebuilds it."""

    def __init__(
        self, agent: PlannedAgent, query: Content, scope: Scope, interrupts: InterruptQueue, spent: Spent
    ) -> None:
        self.agent = agent
        self.query = query
        self.scope = scope
        self.interrupts = interrupts
        self.spent = spent
        self.registry = agent.registry
        self.talk = ""
        self.heard: list[str] = []
        self.plans: list[Plan] = []
        self.steps: list[StepResult] = []
        self.messages: list[Message] = []

    @property
    def plan(self) -> Plan:
        return self.plans[-1]

    @property
    def calls_made(self) -> list[tuple[str, bool]]:
        return [(step.tool_name, step.error is None) for step in self.steps if step.tool_name is not None]

    async def begin(self, history: Sequence[Message]) -> None:
        """Reads the conversation so far and, among many tools, chooses once for the whole run."""
        self.talk = await self._talk([m for m in history if m.role in ("user", "assistant") and m.text])
        self.messages = [*history, Message.user(self.query, pinned=True)]
        agent = self.agent
        announcement = phase("selecting_tools", total_tools=len(self.registry))
        chooser = JournaledModel(
            agent.model, self.scope.child("select"), "selection", announcement, lambda: self._over("plan/1")
        )
        self.registry = await select_tools(
            chooser, self.query, self.registry, threshold=agent.select_above, pinned=agent.pinned_tools
        )
        self._count(chooser.usage)

    async def _talk(self, history: Sequence[Message]) -> str:
        """Earlier turns as text; a long conversation is summarised, or cut where no model does that."""
        kept = list(history)
        guard = self.agent.guard
        if estimate_tokens(kept) > HISTORY_TOKENS and guard.compact_model is not None:
            short = ContextGuard(HISTORY_TOKENS, compact_model=guard.compact_model, prompt=guard.prompt)
            name = "history/compact"
            kept, compaction = await short.reduce(
                kept,
                HISTORY_TOKENS,
                "planner_input",
                journal=self.scope.journal,
                scope=self.scope.key(name),
                is_over=lambda: self._over(name),
            )
            if compaction is not None:
                self._count(compaction.usage)
                event = compact(compaction.original_messages, compaction.kept_messages)
                await self._note(name, {}, event)
        text = "\n".join(f"{message.role}: {message.text}" for message in kept)
        return text if estimate_tokens(kept) <= HISTORY_TOKENS else text[-HISTORY_CHARS:]

    async def hear(self, place: str) -> None:
        """Reads what the user has said since, so that the next call knows it. `place` is that call's."""
        name = f"{place}/heard"
        if not self.scope.recorded(name) and (not len(self.interrupts) or self._over(place)):
            return
        taken: list[Interrupt] = []

        async def effect() -> dict[str, Any]:
            taken[:] = self.interrupts.take()
            return {"interrupts": [item.to_dict() for item in taken]}

        def told(record: dict[str, Any]) -> list[Event]:
            return [inject(item["text"], item["id"]) for item in record["interrupts"]]

        try:
            record = await self.scope.call(name, CallKind.PUBLISH, {"role": "interrupts"}, effect, finished=told)
        except BaseException:
            self.interrupts.put_back(taken)
            raise
        self.heard += [item["text"] for item in record["interrupts"]]
        if images := images_of(record["interrupts"]):  # from now on they belong to what is asked
            asked = [{"type": "text", "text": self.query}] if isinstance(self.query, str) else self.query
            self.query = [*asked, *images]

    async def decide(
        self,
        place: str,
        model: ChatModel,
        role: str,
        think: Callable[[JournaledModel], Awaitable[dict[str, Any]]],
        announcement: Event | None,
        told: Callable[[dict[str, Any]], Iterable[Event]],
    ) -> dict[str, Any]:
        """What a model decides with structured calls. It is recorded whatever came of it; a failure as `error`."""
        await self.hear(place)
        bound = JournaledModel(model, self.scope.child(place), role, announcement, lambda: self._over(place))
        try:
            data = await think(bound)
        except PlanError as error:
            data = {"error": {"code": error.code, "message": error.message, "step_ids": list(error.step_ids)}}
        except EngineError:  # not the model's: a replay that does not match, a script that is too short
            raise
        except Exception as error:  # noqa: BLE001 (whatever a model does here, the run comes to an end of its own)
            data = {"error": {"code": "plan_failed", "message": f"{type(error).__name__}: {error}", "step_ids": []}}
        self._count(bound.usage)
        return await self.scope.call(f"{place}/made", CallKind.PUBLISH, {}, giving(data), finished=told)

    async def make_plan(self, reason: str = "") -> Plan:
        """The next version of the plan. Raises PlanError."""
        planner, version = self.agent.planner(self.registry), len(self.plans) + 1
        made: list[Plan] = []

        async def think(model: JournaledModel) -> dict[str, Any]:
            plan = await planner.plan(
                self.query, talk=self.talk, heard=self.heard, earlier=self.plans, reason=reason, model=model
            )
            made.append(plan)
            return {"steps": [step.to_dict() for step in plan.steps], "reason": reason}

        def told(record: dict[str, Any]) -> list[Event]:
            return [] if "error" in record else [plan_made(version, planner.kind, record["steps"])]

        why = {"reason": reason} if reason else {}
        announcement = phase("replanning" if self.plans else "planning", version=version, **why)
        record = await self.decide(f"plan/{version}", planner.model, "planning", think, announcement, told)
        if failed := record.get("error"):
            raise PlanError(failed["code"], failed["step_ids"], failed["message"])
        if made[0].steps or not self.plans:
            self.plans.append(made[0])
        return made[0]

    async def next_plan(self, reason: str) -> Plan | None:
        """Another plan, if one can be made that has anything to do."""
        try:
            plan = await self.make_plan(reason)
        except PlanError:
            return None
        return plan if plan.steps else None

    async def execute(self, plan: Plan, worker: Worker) -> None:
        agent = self.agent
        scope = self.scope.child(f"plan/{plan.version}")
        scheduler = Scheduler(
            plan,
            scope,
            worker.work,
            self.spent,
            agent.time,
            agent.concurrency,
            agent.step_timeout,
            worker.why_not,
            worker.after,
        )
        await scheduler.run()
        for step in plan.steps:
            self.take(scheduler.done[step.id])

    def take(self, done: Done) -> None:
        """What a step did becomes part of the trace."""
        self.steps += done.steps
        self.messages += [message for message in done.messages if message.role != "system"]

    def gate(self) -> Gate:
        """The agent's gate, behind which a call with an irreversible effect is not made again by a later plan."""
        made = {
            (step.tool_name, canonical_arguments(dict(step.arguments)))
            for step in self.steps
            if (tool := self.registry.get(step.tool_name or "")) and tool.effect_of(step.arguments) is EffectClass.ONCE
        }

        async def once(tool: Tool, arguments: dict[str, Any], key: str) -> Allow | Deny:
            if (tool.name, canonical_arguments(arguments)) in made:
                return Deny("an earlier plan made this call already; it is not made twice")
            return await ask(self.agent.gate, tool, arguments, key)

        return once

    def limit_reached(self, *, ignoring: str = "") -> str | None:
        """The limit that ends the run: one of its own, or one that a step met and only the journal's keeper knows."""
        met = (
            outcome.code for plan in self.plans for outcome in plan.outcomes.values() if outcome.is_ok and outcome.code
        )
        return self.spent.reached(ignoring=ignoring) or next((code.removeprefix("limit:") for code in met), None)

    def limit(self, *, ignoring: str = "") -> tuple[str, str] | None:
        """Why nothing more may begin, in the form of a reason to skip a step."""
        name = self.limit_reached(ignoring=ignoring)
        return None if name is None else ("limit", f"not run: the limit on {name.replace('_', ' ')} was reached")

    async def answer(self, task: str, stop_reason: str = "final_answer") -> AgentResult:
        """The last call: the answer out of all evidence. What is missing is named in any case."""
        await self.hear("answer")
        everything = self.plan.everything
        share = budget_for(self.agent.model) * 3 // max(1, len(everything))
        evidence = evidence_text(everything, max(1_000, min(RESULT_CHARS, share)))
        request = with_images(self.query, request_text(self.query, self.talk, self.heard, evidence))
        messages = [Message.system(answer_system(task, self.agent.instructions)), Message.user(request)]
        nothing = not any(outcome.is_ok for _, outcome in everything)
        written = await write_answer(
            self.scope,
            self.agent.model,
            messages,
            found_text(everything),
            postscript=missing_text(self.plan.missing),
            check=(lambda text: has_no_new_figures(text, Message.user(request).text)) if nothing else None,
        )
        self._count(written.usage)
        return self._answered(written, stop_reason)

    async def say(self, text: str, stop_reason: str, error: str | None = None) -> AgentResult:
        """An answer that needs no model."""
        return self._answered(await publish_answer(self.scope, text), stop_reason, error)

    def _answered(self, written: Written, stop_reason: str, error: str | None = None) -> AgentResult:
        self.steps.append(StepResult(len(self.steps) + 1))
        self.messages.append(Message.assistant(written.text))
        return self.result(written.text, stop_reason, error=error, attempt=written.attempt)

    def result(self, answer: str, stop_reason: str, *, error: str | None = None, attempt: int = 0) -> AgentResult:
        return AgentResult(
            answer,
            self.steps,
            len(self.steps),
            self.spent.usage,
            self.messages,
            stop_reason,
            error,
            streamed=attempt > 0,
            attempt=attempt,
            plan=self.plans[-1] if self.plans else None,
        )

    async def _note(self, name: str, data: dict[str, Any], *events: Event) -> dict[str, Any]:
        return await self.scope.call(name, CallKind.PUBLISH, {}, giving(data), finished=lambda _: events)

    def _over(self, place: str) -> bool:
        """Whether the run has gone on from a place, or stands at the end of it."""
        ends = (place, f"{place}/made", f"{place}/llm/0", f"{place}/publish")
        return any(self.scope.recorded(name) for name in (ends if place == "answer" else ends[:2]))

    def _count(self, usage: Usage) -> None:
        self.spent.add(usage, self.agent.cost_of(usage))


def has_no_new_figures(text: str, known: str) -> bool:
    """Whether each figure in a text stands in another one. Where nothing was found, a new one is an invention."""
    return set(_FIGURE.findall(text)) <= set(_FIGURE.findall(known))
