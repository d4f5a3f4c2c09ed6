"""Passing a conversation on: one model call with the messages and tools of whoever asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any

from .agent import Agent
from .answer import OnText, in_pieces
from .attempts import RetryPolicy
from .events import Event, answer_done
from .interrupts import InterruptQueue
from .journal import CallKind
from .limits import Spent
from .messages import Completion, Content, Message
from .model_call import complete
from .models import ChatModel
from .results import AgentResult, StepResult
from .scope import Scope, llm_request
from .streaming import AnswerWriter
from .tokens import estimate_tokens


class RelayAgent(Agent):
    """The whole conversation is the `history`, and goes to the model as it is; the query is not looked at.

    `request` holds the options of the call: `tools`, `tool_choice`, `response_format`. Calls in the reply are left to
    whoever asked: they stand in the last of the result's messages. Nothing is tried again, as whoever asked can do
    that, too.
    """

    KEY = "relay/llm"

    def __init__(self, model: ChatModel, request: Mapping[str, Any], **options: Any) -> None:
        super().__init__(model, retry=RetryPolicy(retries=0), **options)
        self.request = dict(request)

    async def _work(
        self, query: Content, history: Sequence[Message], scope: Scope, interrupts: InterruptQueue, spent: Spent
    ) -> AgentResult:
        async def effect() -> dict[str, Any]:
            writer = AnswerWriter(scope.voice, 0)
            streams = bool(self.model.abilities.get("streaming"))
            reply = await complete(self.model, history, self.request, self.retry, None, writer if streams else None)
            if reply.message.text and not writer.has_spoken:
                await writer.write(reply.message.text)
            return {**reply.to_dict(), "model": self.model.name, "attempt": writer.attempt}

        size = estimate_tokens(history, self.request.get("tools") or ())
        request = llm_request(self.model, history, 0, "relay", self.request, size)
        record = await scope.call(self.KEY, CallKind.LLM, request, effect, finished=_done)
        completion = Completion.from_dict(record)
        spent.add(completion.usage, self.cost_of(completion.usage))
        said, told = completion.message, [*history, completion.message]
        return AgentResult(
            said.text, [StepResult(1)], 1, spent.usage, told, "final_answer", streamed=True, attempt=record["attempt"]
        )

    def stream_answer(self, query: Content, result: AgentResult) -> AsyncGenerator[str, None]:
        """Yields the text of the reply, which `run()` has sent already."""

        async def write(on_text: OnText) -> str:
            result.delivered = result.answer
            return result.answer

        return in_pieces(write)


def _done(record: dict[str, Any]) -> Iterable[Event]:
    return (answer_done(record["attempt"]),) if record["attempt"] else ()
