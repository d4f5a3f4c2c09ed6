"""The direct way: one call that code could name, or no call at all, and an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .agent import Agent
from .answer import OnText, Written, in_pieces, publish_answer, write_answer
from .history import first_messages
from .interrupts import InterruptQueue
from .limits import Spent
from .messages import Content, Message, ToolCall
from .prompts import IDENTITY, LANGUAGE
from .results import AgentResult, StepResult, tool_steps
from .routing import Workflow
from .scope import Scope
from .synthesis import synthesis_messages
from .tool_batch import ToolBatch


@dataclass(frozen=True, slots=True)
class Lookup:
    """A workflow with the arguments that were found for it."""

    workflow: Workflow
    arguments: Mapping[str, Any]


class DirectAgent(Agent):
    """Makes the call of a fixed workflow, and words the answer by its template or with one model call.

    Without a `lookup` the model answers at once, without tools.
    """

    def __init__(self, *args: Any, lookup: Lookup | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.lookup = lookup

    async def _work(
        self, query: Content, history: Sequence[Message], scope: Scope, interrupts: InterruptQueue, spent: Spent
    ) -> AgentResult:
        system = "\n\n".join(part for part in (IDENTITY, LANGUAGE, self.instructions) if part)
        messages = first_messages(system, history, Message.user(query, pinned=True))
        if self.lookup is None:
            fallback = "The model gave no answer. Try again, or choose another mode."
            return self._result(await write_answer(scope, self.model, messages, fallback), [], messages, spent)
        call = ToolCall("1", self.lookup.workflow.tool, dict(self.lookup.arguments))
        batch = ToolBatch(self.registry, self.gate, scope.child("direct"), spent, self.time)
        recorded = await batch.run(1, [call], [None])
        steps = tool_steps(1, "", [call], recorded)
        found = AgentResult(_plain(steps[0]), steps, 1, spent.usage, messages, "final_answer")
        if (text := self._by_template(steps[0])) is not None:
            return self._result(await publish_answer(scope, text), steps, messages, spent)
        prompt = synthesis_messages(query, found, self.instructions)
        return self._result(await write_answer(scope, self.model, prompt, found.answer), steps, messages, spent)

    def _by_template(self, step: StepResult) -> str | None:
        """The answer that needs no model. A failure is told as it is."""
        if step.error is not None:
            return _plain(step)
        template = self.lookup.workflow.template if self.lookup else ""
        if not template:
            return None
        values = {"result": step.observation, **{name: str(value) for name, value in step.arguments.items()}}
        for name, value in values.items():
            template = template.replace("{" + name + "}", value)
        return template

    def _result(self, written: Written, steps: list[StepResult], messages: list[Message], spent: Spent) -> AgentResult:
        spent.add(written.usage, self.cost_of(written.usage))
        told = [*messages, Message.assistant(written.text)]
        end = StepResult(len(steps) + 1)
        return AgentResult(
            written.text,
            [*steps, end],
            1,
            spent.usage,
            told,
            "final_answer",
            streamed=True,
            attempt=written.attempt,
        )

    def stream_answer(self, query: Content, result: AgentResult) -> AsyncGenerator[str, None]:
        """Yields the text of the answer, which `run()` has sent already."""

        async def write(on_text: OnText) -> str:
            result.delivered = result.answer
            return result.answer

        return in_pieces(write)


def _plain(step: StepResult) -> str:
    return step.observation if step.error is None else f"The lookup failed: {step.error}"
