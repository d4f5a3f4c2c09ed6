"""What ReWOO, Plan-and-Execute and DAG have in common: a plan, its execution, and one answer at the end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any

from .agent import Agent
from .answer import OnText, in_pieces, publish_answer
from .context import ContextGuard
from .errors import PlanError
from .interrupts import InterruptQueue
from .limits import Spent
from .messages import Content, Message
from .models import ChatModel
from .planned_run import RESULT_CHARS, PlannedRun
from .planning import Planner
from .prompts import unfinished_text
from .registry import ToolRegistry
from .results import AgentResult
from .scope import Scope
from .tool_batch import Gate
from .tools import Tool


class PlannedAgent(Agent):
    """Plans, then works, then answers. `run()` delivers the answer itself and sends its text while it is written.

    `planner_model` is asked for plans; the agent's own model does the rest. At most `concurrency` steps of a plan run
    at a time, each for at most `step_timeout` seconds. All other arguments, and the exceptions, are those of `Agent`.
    """

    kind = ""

    def __init__(
        self,
        model: ChatModel,
        tools: Iterable[Tool] = (),
        *,
        planner_model: ChatModel | None = None,
        max_steps: int = 12,
        concurrency: int = 5,
        step_timeout: float = 600.0,
        **options: Any,
    ) -> None:
        super().__init__(model, tools, **options)
        self.planner_model = planner_model or model
        self.max_steps = max_steps
        self.concurrency = concurrency
        self.step_timeout = step_timeout
        self._options = options

    async def _work(
        self, query: Content, history: Sequence[Message], scope: Scope, interrupts: InterruptQueue, spent: Spent
    ) -> AgentResult:
        run = PlannedRun(self, query, scope, interrupts, spent)
        await run.begin(history)
        try:
            return await self._carry_out(run)
        except PlanError as error:
            text = unfinished_text(f"there was no usable plan ({error.code})", run.calls_made)
            return run.result(text, "plan_failed", error=f"{error.code}: {error.message}")

    @abstractmethod
    async def _carry_out(self, run: PlannedRun) -> AgentResult:
        """The loop. A PlanError that leaves it means that there was no plan to begin with."""

    def stream_answer(self, query: Content, result: AgentResult) -> AsyncGenerator[str, None]:
        """Yields the text of the answer. Where `run()` has sent it already, nothing is sent again."""

        async def write(on_text: OnText) -> str:
            if not result.streamed:
                await publish_answer(self._scope(), result.answer, attempt=result.attempt, on_text=on_text)
            result.delivered = result.answer
            return result.answer

        return in_pieces(write)

    def planner(self, registry: ToolRegistry | None = None) -> Planner:
        """The planner of this agent; it works on its own too."""
        tools = self.registry if registry is None else registry
        return Planner(
            self.planner_model, tools, kind=self.kind, max_steps=self.max_steps, instructions=self.instructions
        )

    def step_options(self, registry: ToolRegistry, gate: Gate | None) -> dict[str, Any]:
        """Settings for the agents of single steps; their tools have been chosen for the whole run."""
        fixed = {"gate": gate, "select_above": len(registry), "stream_direct": False}
        return {**self._options, **fixed, "guard": guard_for_steps(self.guard, self.guard.budget)}


def guard_for_steps(guard: ContextGuard, budget: int) -> ContextGuard:
    """The same guard, with room for the result of another step in one message."""
    return ContextGuard(
        budget,
        compact_model=guard.compact_model,
        keep_recent=guard.keep_recent,
        max_message_chars=max(guard.max_message_chars, RESULT_CHARS + 2_000),
        prompt=guard.prompt,
    )
