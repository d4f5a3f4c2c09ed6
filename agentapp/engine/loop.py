"""The tool loop of one run: ask, interpret, act, until there is an answer or a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from . import events, prompts
from .attempts import with_retries
from .dialects import Dialect, JsonDialect, NativeDialect, Turn
from .errors import ModelError
from .history import first_messages, validate_pairing
from .interrupts import InterruptQueue, interrupt_message
from .journal import CallKind
from .limits import Spent
from .messages import Completion, Content, Message
from .results import AgentResult, StepResult
from .scope import Scope, llm_request
from .streaming import AnswerWriter
from .tool_batch import ToolBatch
from .tools import observation_for_model

if TYPE_CHECKING:
    from .react import ReActAgent

MAX_TOOL_CHARS = 160_000  # all results of a run: 40,000 tokens of four characters
TOOL_HEAD_CHARS = 500


@dataclass(frozen=True, slots=True)
class Judged:
    """A reply, what it means, and whether it ends the run."""

    completion: Completion
    turn: Turn
    accepted: bool


class Loop:
    """State of one run. Everything in it follows from recorded results, so that a replay rebuilds it."""

    def __init__(self, agent: ReActAgent, query: Content, history: Sequence[Message], scope: Scope) -> None:
        self.agent = agent
        self.model = agent.model
        self.query = query
        self.history = history
        self.root = scope
        self.scope = scope.child("react")
        self.spent = Spent(agent.limits)
        self.steps: list[StepResult] = []
        self.trace: list[Message] = []
        self.recorded_messages = 0
        self.tool_turns = 0
        self.tool_chars = 0
        self.failed_replies = 0
        self.held = False
        self.attempt = 0

    async def run(self, interrupts: InterruptQueue) -> AgentResult:
        self.interrupts = interrupts
        await self._begin()
        last = self.agent.max_iterations
        for iteration in range(1, last + 1):
            if limit := self.spent.reached():
                return await self._answer_at_limit(iteration, limit)
            judged = await self._ask(iteration, self.dialect.options(self.tool_turns), is_last=iteration == last)
            if (result := await self._act(iteration, judged, is_last=iteration == last)) is not None:
                return result
        return self._unfinished("max_iterations", f"all {last} iterations were used", last)

    async def _begin(self) -> None:
        now = await self._now()
        registry = self.agent.registry
        native = self.agent._native_mode_active
        self.dialect: Dialect = (
            NativeDialect(registry, self.model.max_output_tokens)
            if native
            else JsonDialect(registry, self.model.abilities)
        )
        self.batch = ToolBatch(registry, self.agent.gate, self.scope, self.agent.time)
        text = prompts.system_text(
            list(registry), self.agent.instructions, json_contract=self.dialect.json_contract, now=now
        )
        query = Message.user(self.query, pinned=True)
        system, *rest = first_messages(text, self.history, query)
        self.trace = [system, *(message for example in self.agent.examples for message in example), *rest]

    async def _now(self) -> datetime | None:
        clock = self.agent.clock
        # Behind the system message a small model has its examples: the date would spoil the cache of all of them.
        if clock is None or self.model.abilities.get("small"):
            return None

        async def effect() -> dict[str, Any]:
            return {"now": clock().isoformat()}

        return datetime.fromisoformat((await self.root.call("clock/0", CallKind.CLOCK, {}, effect))["now"])

    async def _ask(self, iteration: int, options: dict[str, Any], *, is_last: bool) -> Judged:
        """One model call. The interrupts that it is the first to see are part of its record."""
        judged: list[Judged] = []

        async def effect() -> dict[str, Any]:
            admitted = self.interrupts.take()
            begun = self.agent.time()
            try:
                reply = await self._call_model([item.text for item in admitted], options)
            except BaseException:
                self.interrupts.put_back(admitted)
                raise
            reply["interrupts"] = [{"id": item.id, "text": item.text} for item in admitted]
            reply["interrupted"] = len(self.interrupts) > 0
            reply["elapsed"] = round(max(0.0, self.agent.time() - begun), 6)
            return reply

        def finished(record: dict[str, Any]) -> list[events.Event]:
            judged.append(self._judge(iteration, record, is_last))
            return self._events(iteration, record, judged[-1])

        new = self.trace[self.recorded_messages :]
        record = await self.scope.call(
            f"{iteration}/llm",
            CallKind.LLM,
            llm_request(self.model, new, self.recorded_messages, "loop", options),
            effect,
            started=(events.thinking_start(iteration),),
            finished=finished,
        )
        self.recorded_messages = len(self.trace)
        result = judged[-1] if judged else self._judge(iteration, record, is_last)
        self._note(record, result)
        return result

    async def _call_model(self, texts: Sequence[str], options: dict[str, Any]) -> dict[str, Any]:
        messages = [*self.trace, *self._interrupt_messages(texts)]
        validate_pairing(messages)
        writer = AnswerWriter(self.root.emit, self.attempt)
        streams = self.agent.stream_direct and self.dialect.speaks(self.tool_turns)

        async def attempt() -> Completion:
            if not (streams and self.model.abilities.get("streaming")):
                return await self.model.chat(messages, **options)
            writer.abandon()
            return await writer.copy(self.model.stream_chat(messages, **options))

        completion = await with_retries(self.agent.retry, attempt)
        return {
            **completion.to_dict(),
            "model": self.model.name,
            "streamed": writer.has_spoken,
            "attempt": writer.attempt,
        }

    def _interrupt_messages(self, texts: Sequence[str]) -> list[Message]:
        if texts:
            return [interrupt_message(texts)]
        # A final reply was held back for an interrupt that has been recalled since.
        return [Message.user(prompts.RECALLED)] if self.held else []

    def _judge(self, iteration: int, record: dict[str, Any], is_last: bool) -> Judged:
        completion = Completion.from_dict(record)
        turn = self.dialect.read(completion, iteration)
        final = turn.kind == "final" or (turn.kind == "unparseable" and (is_last or self.failed_replies > 0))
        return Judged(completion, turn, final and (is_last or not record["interrupted"]))

    def _events(self, iteration: int, record: dict[str, Any], judged: Judged) -> list[events.Event]:
        happened = [events.inject(item["text"], item["id"]) for item in record["interrupts"]]
        happened.append(events.thinking_done(iteration, judged.turn.reasoning))
        if judged.accepted:
            happened.append(events.answer_signal())
            if record["streamed"]:
                happened.append(events.answer_done(record["attempt"]))
        return happened

    def _note(self, record: dict[str, Any], judged: Judged) -> None:
        """Takes a record into the state of the run."""
        usage = judged.completion.usage
        self.spent.usage += usage
        self.spent.cost += self.agent.cost_of(usage)
        self.spent.seconds += record["elapsed"]
        self.attempt = record["attempt"]
        self.streamed = record["streamed"]
        self.trace += self._interrupt_messages([item["text"] for item in record["interrupts"]])
        self.held = judged.turn.kind == "final" and not judged.accepted

    async def _act(self, iteration: int, judged: Judged, *, is_last: bool) -> AgentResult | None:
        turn = judged.turn
        if judged.accepted:
            return self._final(iteration, turn)
        if turn.kind == "tools":
            self.failed_replies = 0
            await self._use_tools(iteration, turn)
        elif turn.kind == "final":
            self.trace.append(turn.message)
        elif turn.kind == "empty" and self.failed_replies:
            return self._unfinished("no_answer", "the model gave no answer", iteration)
        else:
            self.failed_replies += 1
            if turn.message.text.strip():
                self.trace.append(turn.message)
            retry = prompts.REFORMAT if self.dialect.json_contract else prompts.NUDGE
            self.trace.append(Message.user(retry))
        return None

    async def _use_tools(self, iteration: int, turn: Turn) -> None:
        self.trace.append(turn.message)
        allowed = self.spent.reserve_tool_calls(len(turn.calls))
        over = f"not run: the limit of {self.agent.limits.tool_calls} tool calls of this run is reached"
        refusals = [turn.refusal or (over if slot >= allowed else None) for slot in range(len(turn.calls))]
        results = await self.batch.run(iteration, turn.calls, refusals)
        self.tool_turns += 1
        self.spent.seconds += max(result["elapsed"] for result in results)
        observations = [self._within_budget(_told(result)) for result in results]
        self.trace += self.dialect.results(turn.calls, observations)
        for call, result in zip(turn.calls, results, strict=True):
            failed = result["is_error"]
            self.steps.append(
                StepResult(
                    iteration,
                    call.name,
                    result.get("executed_arguments", call.arguments),
                    "" if failed else result["content"],
                    result["content"] if failed else None,
                    result["artifacts"],
                    result["elapsed"],
                    turn.reasoning,
                )
            )

    def _within_budget(self, observation: str) -> str:
        """Results beyond the budget of the run keep a short head only."""
        self.tool_chars += len(observation)
        if self.tool_chars <= MAX_TOOL_CHARS or len(observation) <= TOOL_HEAD_CHARS:
            return observation
        notice = f"[cut: the results of this run exceed their budget of {MAX_TOOL_CHARS // 4:,} tokens]"
        return f"{observation[:TOOL_HEAD_CHARS]}\n{notice}"

    async def _answer_at_limit(self, iteration: int, limit: str) -> AgentResult:
        """One last call without tools; when it fails, the fallback text."""
        why = f"the limit on {limit.replace('_', ' ')} was reached"
        self.trace.append(Message.user(prompts.LAST_ANSWER.format(limit=limit.replace("_", " "))))
        try:
            judged = await self._ask(iteration, {}, is_last=True)
        except ModelError:
            return self._unfinished(f"limit:{limit}", why, iteration - 1)
        if not judged.accepted:
            return self._unfinished(f"limit:{limit}", why, iteration)
        return self._final(iteration, judged.turn, f"limit:{limit}")

    def _final(self, iteration: int, turn: Turn, stop_reason: str = "final_answer") -> AgentResult:
        self.trace.append(turn.message)
        reasoning = turn.reasoning if turn.kind == "final" else "The reply could not be parsed; its text is the answer."
        self.steps.append(StepResult(iteration, reasoning=reasoning))
        return self._result(turn.text, iteration, stop_reason, streamed=self.streamed)

    def _unfinished(self, stop_reason: str, why: str, iterations: int) -> AgentResult:
        ran = [(step.tool_name, step.error is None) for step in self.steps if step.tool_name is not None]
        return self._result(prompts.unfinished_text(why, ran), iterations, stop_reason)

    def _result(self, answer: str, iterations: int, stop_reason: str, *, streamed: bool = False) -> AgentResult:
        return AgentResult(
            answer,
            self.steps,
            iterations,
            self.spent.usage,
            self.trace,
            stop_reason,
            streamed=streamed,
            attempt=self.attempt,
        )


def _told(result: dict[str, Any]) -> str:
    text = observation_for_model(result)
    edited = result.get("executed_arguments")
    return text if edited is None else f"[A person changed the arguments to {edited} before the call ran.]\n{text}"
