"""The ReAct agent: a loop of reasoning and tools, then an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from .agent import Agent
from .answer import OnText, in_pieces, write_answer
from .interrupts import InterruptQueue
from .limits import Spent
from .loop import Loop
from .messages import Content, Message
from .results import AgentResult
from .scope import Scope
from .synthesis import synthesis_messages


class ReActAgent(Agent):
    """After each result the model decides anew what to do next.

    `run()` is the loop and returns its result; `stream_answer()` then writes the answer from it. A run that used
    no tool has its answer in `result.answer` already. Arguments and exceptions are those of `Agent`.
    """

    @property
    def _native_mode_active(self) -> bool:
        return self.use_native_tools and bool(self.model.abilities.get("tool_call"))

    async def _work(
        self, query: Content, history: Sequence[Message], scope: Scope, interrupts: InterruptQueue, spent: Spent
    ) -> AgentResult:
        return await Loop(self, query, history, scope, interrupts, spent).run()

    def stream_answer(self, query: Content, result: AgentResult) -> AsyncGenerator[str, None]:
        """Writes the answer and yields it in pieces; a recorded one comes as one piece.

        When the model fails before its first word, `result.answer` is delivered. When it fails later the text
        begins anew, with a new `attempt` in the events: `result.delivered` is the text that counts.
        """

        async def write(on_text: OnText) -> str:
            messages = synthesis_messages(query, result, self.instructions)
            written = await write_answer(
                self._scope(), self.model, messages, result.answer, attempt=result.attempt, on_text=on_text
            )
            if result.delivered is None:
                result.usage += written.usage
            result.delivered = written.text
            return written.text

        return in_pieces(write)
