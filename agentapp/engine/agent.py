"""What all agents have in common: their parts, their settings, and being a tool of one another."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from datetime import datetime

from .attempts import RetryPolicy
from .context import ContextGuard
from .delegation import agent_tool
from .events import Emit
from .interrupts import InterruptQueue
from .journal import Journal, MemoryJournal
from .limits import Limits, Spent
from .messages import Content, Message, Usage
from .models import ChatModel
from .prices import price_of
from .registry import ToolRegistry
from .results import AgentResult
from .scope import Scope
from .selection import TOOL_SELECTION_THRESHOLD
from .tokens import budget_for
from .tool_batch import Gate
from .tools import Tool


class Agent(ABC):
    """Works on a request with tools. One instance serves many runs, at the same time too.

    `run()` returns the result of the work; `stream_answer()` then gives the answer's text. Without a `journal` each
    run has one of its own, in memory.

    `examples` are worked exchanges, shown to the model as real messages behind the system message. With
    `stream_direct` a native model that streams sends a direct answer while it writes it. `clock` gives the date
    that the model is told, and measures elapsed time.

    `guard` keeps requests within the model's context, of whose tool results the newest `keep_results` stay whole.
    Above `select_above` tools the model first chooses among them; `pinned_tools` are always there. `reflect_every`
    turns of tools the goal is restated, a short answer after `checklist_from` turns is checked once; 0 switches either
    off. `block_repeats` stops loops.

    Raises `ModelError` when the model fails for good, `RunSuspended` when a gate asks for a person, and
    `UnknownOutcome` when an irreversible call may or may not have happened; each can be resumed over its journal.
    """

    def __init__(
        self,
        model: ChatModel,
        tools: Iterable[Tool] = (),
        *,
        instructions: str = "",
        use_native_tools: bool = True,
        max_iterations: int = 50,
        guard: ContextGuard | None = None,
        select_above: int = TOOL_SELECTION_THRESHOLD,
        pinned_tools: Collection[str] = (),
        limits: Limits = Limits(),  # noqa: B008 (immutable)
        journal: Journal | None = None,
        emit: Emit | None = None,
        gate: Gate | None = None,
        clock: Callable[[], datetime] | None = None,
        examples: Sequence[Sequence[Message]] = (),
        stream_direct: bool = False,
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008 (immutable)
        keep_results: int = 6,
        reflect_every: int = 6,
        checklist_from: int = 3,
        block_repeats: bool = True,
    ) -> None:
        self.model = model
        self.registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self.instructions = instructions
        self.use_native_tools = use_native_tools
        self.max_iterations = max_iterations
        self.guard = guard or ContextGuard(budget_for(model))
        self.select_above = select_above
        self.pinned_tools = pinned_tools
        self.limits = limits
        self.journal = journal
        self.emit = emit
        self.gate = gate
        self.clock = clock
        self.examples = examples
        self.stream_direct = stream_direct
        self.retry = retry
        self.keep_results = keep_results
        self.reflect_every = reflect_every
        self.checklist_from = checklist_from
        self.block_repeats = block_repeats

    def time(self) -> float:
        return time.monotonic() if self.clock is None else self.clock().timestamp()

    def cost_of(self, usage: Usage) -> float:
        return price_of(self.model, usage)

    async def run(
        self, query: Content, *, history: Sequence[Message] = (), interrupts: InterruptQueue | None = None
    ) -> AgentResult:
        """Works on the request to its end."""
        queue = InterruptQueue() if interrupts is None else interrupts
        return await self._work(query, history, self._scope(), queue, Spent(self.limits))

    def as_tool(self, name: str, description: str) -> Tool:
        """This agent as a tool of another one: for each call it works on the request in a run of its own.

        What it does is recorded in the other's journal. Usage, limits, gate and cancellation are the other's;
        model, tools, guard and instructions are its own.
        """
        return agent_tool(self, name, description)

    @abstractmethod
    async def _work(
        self, query: Content, history: Sequence[Message], scope: Scope, interrupts: InterruptQueue, spent: Spent
    ) -> AgentResult:
        """A run in any scope and on any account; of another agent too."""

    @abstractmethod
    def stream_answer(self, query: Content, result: AgentResult) -> AsyncGenerator[str, None]:
        """Yields the answer's text in pieces."""

    def _scope(self) -> Scope:
        return Scope(self.journal or MemoryJournal(), self.emit)
