"""The ReAct agent: a loop of reasoning and tools, then an answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from .attempts import RetryPolicy
from .context import ContextGuard
from .delegation import agent_tool
from .errors import ModelError
from .events import Emit, Event, answer_done
from .interrupts import InterruptQueue
from .journal import CallKind, Journal, MemoryJournal
from .limits import Limits, Spent
from .loop import Loop
from .messages import Completion, Content, Message, Usage
from .models import ChatModel
from .results import AgentResult
from .scope import Scope, llm_request
from .selection import TOOL_SELECTION_THRESHOLD
from .streaming import AnswerWriter
from .synthesis import synthesis_messages
from .tokens import budget_for, estimate_tokens
from .tool_batch import Gate
from .tools import Tool, ToolRegistry

PIECE_CHARS = 400


class ReActAgent:
    """Works on a request with tools. One instance serves many runs, at the same time too.

    `run()` is the loop and returns its result; `stream_answer()` then writes the answer from it. A run that used
    no tool has its answer in `result.answer` already. Without a `journal` each run has one of its own, in memory.

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

    @property
    def _native_mode_active(self) -> bool:
        return self.use_native_tools and bool(self.model.abilities.get("tool_call"))

    def time(self) -> float:
        return time.monotonic() if self.clock is None else self.clock().timestamp()

    def cost_of(self, usage: Usage) -> float:
        price: Callable[[Usage], float] | None = getattr(self.model, "cost_of", None)
        return price(usage) if price else 0

    async def run(
        self, query: Content, *, history: Sequence[Message] = (), interrupts: InterruptQueue | None = None
    ) -> AgentResult:
        """Runs the loop to its end."""
        queue = InterruptQueue() if interrupts is None else interrupts
        return await Loop(self, query, history, self._scope(), queue, Spent(self.limits)).run()

    def as_tool(self, name: str, description: str) -> Tool:
        """This agent as a tool of another one: for each call it works on the request in a run of its own.

        What it does is recorded in the other's journal. Usage, limits, gate and cancellation are the other's;
        model, tools, guard and instructions are its own.
        """
        return agent_tool(self, name, description)

    async def _work(self, request: str, scope: Scope, spent: Spent) -> AgentResult:
        """A run on behalf of another agent, in its journal and on its account."""
        return await Loop(self, request, (), scope, InterruptQueue(), spent).run()

    async def stream_answer(self, query: Content, result: AgentResult) -> AsyncGenerator[str, None]:
        """Writes the answer and yields it in pieces; a recorded one comes as one piece.

        When the model fails before its first word, `result.answer` is delivered. When it fails later the text
        begins anew, with a new `attempt` in the events: `result.delivered` is the text that counts.
        """
        pieces: list[str] = []
        ready = asyncio.Event()

        def on_text(text: str) -> None:
            pieces.append(text)
            ready.set()

        task = asyncio.create_task(self._synthesise(query, result, on_text))
        task.add_done_callback(lambda _: ready.set())
        spoken = False
        try:
            while not task.done() or pieces:
                await ready.wait()
                ready.clear()
                while pieces:
                    spoken = True
                    yield pieces.pop(0)
            text = task.result()
            if not spoken:
                yield text
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    async def _synthesise(self, query: Content, result: AgentResult, on_text: Callable[[str], None]) -> str:
        messages = synthesis_messages(query, result, self.instructions)

        async def effect() -> dict[str, Any]:
            writer = AnswerWriter(self.emit, result.attempt, on_text)
            completion = await self._write(messages, writer, result.answer)
            return {**completion.to_dict(), "model": self.model.name, "attempt": writer.attempt}

        def finished(record: dict[str, Any]) -> Iterable[Event]:
            return (answer_done(record["attempt"]),)

        request = llm_request(self.model, messages, 0, "synthesis", {}, estimate_tokens(messages))
        record = await self._scope().call("answer/llm/0", CallKind.LLM, request, effect, finished=finished)
        completion = Completion.from_dict(record)
        if result.delivered is None:
            result.usage += completion.usage
        result.delivered = completion.message.text
        return result.delivered

    async def _write(self, messages: Sequence[Message], writer: AnswerWriter, fallback: str) -> Completion:
        """The model's text, at a second attempt if the first broke off, or else the fallback."""
        for _ in range(2):
            try:
                completion = await writer.copy(self.model.stream_chat(messages))
            except ModelError:
                if not writer.has_spoken:
                    break
                writer.abandon()
                continue
            if completion.message.text.strip():
                return completion
            writer.abandon()
            break
        for start in range(0, len(fallback), PIECE_CHARS):
            await writer.write(fallback[start : start + PIECE_CHARS])
        return Completion(Message.assistant(fallback), "fallback", Usage(calls=1))

    def _scope(self) -> Scope:
        return Scope(self.journal or MemoryJournal(), self.emit)
