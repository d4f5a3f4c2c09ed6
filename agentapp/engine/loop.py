"""The tool loop of one run: ask, interpret, act, until there is an answer or a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from . import events, prompts
from .context import Compaction
from .conversation import Conversation
from .dialects import Judged, Turn
from .errors import ContextOverflow, LimitReached, ModelError, OutOfTime
from .history import first_messages
from .interrupts import InterruptQueue, interrupt_message
from .journal import CallKind
from .limits import Spent
from .loop_guard import LoopGuard
from .messages import Completion, Content, Message
from .model_call import complete
from .observations import Observations
from .results import AgentResult, StepResult, tool_steps
from .scope import Scope, llm_request
from .streaming import AnswerWriter
from .toolbox import Toolbox
from .tools import cut_text

if TYPE_CHECKING:
    from .react import ReActAgent

CHECKLIST_CHARS = 800


class Loop:
    """State of one run. Everything in it follows from recorded results, so that a replay rebuilds it."""

    def __init__(
        self,
        agent: ReActAgent,
        query: Content,
        history: Sequence[Message],
        scope: Scope,
        interrupts: InterruptQueue,
        spent: Spent,
    ) -> None:
        self.agent = agent
        self.model = agent.model
        self.query = query
        self.history = history
        self.root = scope
        self.scope = scope.child("react")
        self.interrupts = interrupts
        self.spent = spent
        self.steps: list[StepResult] = []
        self.tool_turns = 0
        self.observations = Observations()
        self.failed_replies = 0
        self.waiting: list[str] = []
        self.checked = False
        self.held = False
        self.streamed = False
        self.attempt = 0

    async def run(self) -> AgentResult:
        await self._begin()
        last = self.agent.max_iterations
        for iteration in range(1, last + 1):
            if (result := await self._iterate(iteration, is_last=iteration == last)) is not None:
                return result
        return self._unfinished("max_iterations", f"all {last} iterations were used", last)

    async def _begin(self) -> None:
        agent = self.agent
        # Behind the system message a small model has its examples: the date would spoil the cache of all of them.
        now = None if self.model.abilities.get("small") else await self.root.now(agent.clock)
        self.tools, usage = await Toolbox.choose(agent, self.query, self.root, self.scope, self.spent)
        self.spent.add(usage, agent.cost_of(usage))
        self.guard = LoopGuard(self.tools.registry)
        text = prompts.system_text(
            list(self.tools.registry),
            agent.instructions,
            json_contract=self.tools.dialect.json_contract,
            now=now,
        )
        system, *rest = first_messages(text, self.history, Message.user(self.query, pinned=True))
        examples = [message for example in agent.examples for message in example]
        self.talk = Conversation(agent.guard, self.scope, [system, *rest], agent.keep_results, examples)

    async def _iterate(self, iteration: int, *, is_last: bool) -> AgentResult | None:
        """One model call and what follows from it. At a limit it is the last one, without tools."""
        limit = self.spent.reached()
        try:
            with self.spent.model_call():
                try:
                    judged = await self._ask(iteration, limit, is_last=is_last)
                except LimitReached as reached:
                    if limit is not None:  # not even the last answer
                        raise
                    limit = reached.limit
                    judged = await self._ask(iteration, limit, is_last=is_last)
        except ModelError as error:
            if isinstance(error, OutOfTime):
                limit = limit or "seconds"
            if limit is None and not isinstance(error, ContextOverflow):
                raise
            return await self._ended_by(error, iteration, limit)
        if judged.limit is None:
            return await self._act(iteration, judged, is_last=is_last)
        if judged.accepted:
            return self._final(iteration, judged.turn, f"limit:{judged.limit}")
        return self._stopped_at(judged.limit, iteration)

    async def _ended_by(self, error: ModelError, iteration: int, limit: str | None) -> AgentResult:
        """A failure that ends the run with an answer is recorded as its end, so that a replay does not try again."""

        async def effect() -> dict[str, Any]:
            why = str(error).rstrip(".") if isinstance(error, LimitReached) else ""
            overflow = isinstance(error, ContextOverflow)
            return {"error": str(error), "overflow": overflow, "limit": limit, "why": why}

        end = await self.scope.call(f"{iteration}/end", CallKind.PUBLISH, {}, effect)
        if end["limit"]:
            return self._stopped_at(end["limit"], iteration - 1, end.get("why", ""))
        why = "the conversation is too long for the model"
        return self._unfinished("context_irreducible", why, iteration - 1, error=end["error"])

    def _fail_as_before(self, iteration: int, *, shrunk: bool) -> None:
        """A call without a record that something later has been recorded of was too long, and is not made again."""
        later = ("end",) if shrunk else ("end", "overflow/llm/0")
        went_on = any(self.scope.recorded(f"{iteration}/{name}") for name in later)
        if went_on and not self.scope.recorded(f"{iteration}/llm"):
            raise ContextOverflow("the first time it was too long")

    async def _ask(self, iteration: int, limit: str | None, *, is_last: bool) -> Judged:
        """One model call within the context; a provider that finds it too long gets half of it, once a run."""
        options = {} if limit else self.tools.dialect.options(self.tool_turns)
        compaction = await self.talk.fit(iteration, options.get("tools") or ())
        self._count(compaction)
        call = partial(self._call, iteration, options, limit, is_last)
        try:
            record, judged = await call(compaction, shrunk=False)
        except ContextOverflow:
            compaction = await self.talk.shrink(iteration)
            self._count(compaction)
            record, judged = await call(compaction, shrunk=True)
        else:
            if record["shrunk"]:  # a replay: take the same way as the first time
                self._count(await self.talk.shrink(iteration))
        self._note(record, judged)
        return judged

    async def _call(
        self,
        iteration: int,
        options: dict[str, Any],
        limit: str | None,
        is_last: bool,
        compaction: Compaction | None,
        *,
        shrunk: bool,
    ) -> tuple[dict[str, Any], Judged]:
        """The journaled call, judged once."""
        self._fail_as_before(iteration, shrunk=shrunk)
        judged: list[Judged] = []

        def finished(record: dict[str, Any]) -> list[events.Event]:
            judged.append(self._judge(iteration, record, is_last))
            return self._events(iteration, record, judged[-1])

        new, before = self.talk.unrecorded()
        started = [events.thinking_start(iteration)]
        if compaction is not None:
            started.append(events.compact(compaction.original_messages, compaction.kept_messages))
        record = await self.scope.call(
            f"{iteration}/llm",
            CallKind.LLM,
            llm_request(
                self.model, [*new, *_last_words(limit)], before, "loop", options, self.talk.size, last=limit is not None
            ),
            partial(self._reply, options, limit, shrunk),
            started=started,
            finished=finished,
        )
        return record, judged[-1] if judged else self._judge(iteration, record, is_last)

    async def _reply(self, options: dict[str, Any], limit: str | None, shrunk: bool) -> dict[str, Any]:
        """The effect of a call. Whatever it decides is part of its record: the limit it met, the interrupts that it
        was the first to see, and those that came while it ran."""
        admitted = self.interrupts.take()
        early = all(item.id in self.waiting for item in admitted)
        writer = AnswerWriter(self.root.emit, self.attempt)
        begun = self.agent.time()
        try:
            interrupts = self._interrupt_messages([item.text for item in admitted])
            messages = [*self.talk.outgoing(interrupts, early=early), *_last_words(limit)]
            completion = await self._complete(messages, options, writer)
        except BaseException:
            self.interrupts.put_back(admitted)
            raise
        return {
            **completion.to_dict(),
            "model": self.model.name,
            "streamed": writer.has_spoken,
            "attempt": writer.attempt,
            "limit": limit,
            "interrupts": [{"id": item.id, "text": item.text} for item in admitted],
            "early": early,
            "waiting": self.interrupts.ids,
            "shrunk": shrunk,
            "elapsed": round(max(0.0, self.agent.time() - begun), 6),
        }

    async def _complete(self, messages: Sequence[Message], options: dict[str, Any], writer: AnswerWriter) -> Completion:
        speaks = self.agent.stream_direct and self.tools.dialect.speaks(self.tool_turns)
        streams = speaks and bool(self.model.abilities.get("streaming"))
        patience = self.spent.seconds_left
        return await complete(self.model, messages, options, self.agent.retry, patience, writer if streams else None)

    def _interrupt_messages(self, texts: Sequence[str]) -> list[Message]:
        if texts:
            return [interrupt_message(texts)]
        # A final reply was held back for an interrupt that has been recalled since.
        return [Message.user(prompts.RECALLED)] if self.held else []

    def _judge(self, iteration: int, record: dict[str, Any], is_last: bool) -> Judged:
        completion = Completion.from_dict(record)
        turn = self.tools.dialect.read(completion, iteration)
        message = replace(turn.message, author=record["model"])
        turn = replace(turn, message=message if message.author == self.model.name else message.without_metadata())
        is_last = is_last or record["limit"] is not None
        final = turn.kind == "final" or (turn.kind == "unparseable" and (is_last or self.failed_replies > 0))
        free = final and (is_last or not record["waiting"])
        check = free and not is_last and self._wants_check(turn)
        return Judged(completion, turn, free and not check, check, record["limit"])

    def _wants_check(self, turn: Turn) -> bool:
        due = 0 < self.agent.checklist_from <= self.tool_turns and not self.checked
        return due and turn.kind == "final" and len(turn.text) <= CHECKLIST_CHARS

    def _events(self, iteration: int, record: dict[str, Any], judged: Judged) -> list[events.Event]:
        happened = [events.inject(item["text"], item["id"]) for item in record["interrupts"]]
        happened.append(events.thinking_done(iteration, judged.turn.reasoning))
        if judged.accepted:
            happened.append(events.answer_signal())
            if record["streamed"]:
                happened.append(events.answer_done(record["attempt"]))
        return happened

    def _count(self, compaction: Compaction | None) -> None:
        if compaction is not None:
            self.spent.add(compaction.usage, self.agent.cost_of(compaction.usage))

    def _note(self, record: dict[str, Any], judged: Judged) -> None:
        """Takes a record into the state of the run."""
        usage = judged.completion.usage
        self.spent.add(usage, self.agent.cost_of(usage), seconds=record["elapsed"])
        self.attempt = record["attempt"]
        self.streamed = record["streamed"]
        texts = [item["text"] for item in record["interrupts"]]
        self.talk.admit(self._interrupt_messages(texts), early=record["early"])
        self.talk.say(*_last_words(judged.limit))
        self.talk.mark_recorded()
        self.waiting = record["waiting"]
        self.held = judged.turn.kind == "final" and not judged.accepted and not judged.check

    async def _act(self, iteration: int, judged: Judged, *, is_last: bool) -> AgentResult | None:
        turn = judged.turn
        if judged.accepted:
            return self._final(iteration, turn)
        if turn.kind == "tools":
            return await self._use_tools(iteration, turn, is_last)
        if turn.kind == "final":
            self.talk.say_reply(turn.message)
            if judged.check:
                self.checked = True
                self.talk.say(Message.user(prompts.CHECKLIST))
            return None
        if turn.kind == "empty" and self.failed_replies:
            return self._unfinished("no_answer", "the model gave no answer", iteration)
        self.failed_replies += 1
        if turn.message.text.strip():
            self.talk.say_reply(turn.message)
        self.talk.say(Message.user(prompts.REFORMAT if self.tools.dialect.json_contract else prompts.NUDGE))
        return None

    async def _use_tools(self, iteration: int, turn: Turn, is_last: bool) -> AgentResult | None:
        self.failed_replies = 0
        results = await self.tools.run(iteration, turn.calls, self._refusals(turn))
        self.tool_turns += 1
        self.spent.seconds += max(result["elapsed"] for result in results)
        observations = [self.observations.tell(result) for result in results]
        self.talk.say_reply(turn.message)
        self.talk.say(*self.tools.dialect.results(turn.calls, observations))
        self.steps += tool_steps(iteration, turn.reasoning, turn.calls, results)
        self.talk.say(*self.tools.load_requested(turn.calls, results))
        warning = self.guard.note(turn.calls, results)
        if self.guard.tripped and self.agent.block_repeats:
            return self._unfinished("loop_detected", "the same calls were made again and again", iteration)
        if warning and self.agent.block_repeats:
            self.talk.say(Message.user(warning))
        every = self.agent.reflect_every
        if every and self.tool_turns % every == 0 and not is_last:
            goal = cut_text(Message.user(self.query).text, 2_000)
            self.talk.say(Message.user(prompts.REFLECTION.format(turns=self.tool_turns, query=goal)))
        return None

    def _refusals(self, turn: Turn) -> list[str | None]:
        """Why calls of this reply must not run. The rest is counted against the limit before any of it starts."""
        blocked = [turn.refusal or (self.guard.refusal(c) if self.agent.block_repeats else None) for c in turn.calls]
        allowed = self.spent.reserve_tool_calls(sum(refusal is None for refusal in blocked))
        over = f"not run: the limit of {self.agent.limits.tool_calls} tool calls of this run is reached"
        refusals: list[str | None] = []
        for refusal in blocked:
            if refusal is None:
                allowed -= 1
                refusal = over if allowed < 0 else None
            refusals.append(refusal)
        return refusals

    def _stopped_at(self, limit: str, iterations: int, why: str = "") -> AgentResult:
        why = why or f"the limit on {limit.replace('_', ' ')} was reached"
        return self._unfinished(f"limit:{limit}", why, iterations)

    def _final(self, iteration: int, turn: Turn, stop_reason: str = "final_answer") -> AgentResult:
        self.talk.say(turn.message)
        reasoning = turn.reasoning if turn.kind == "final" else "The reply could not be parsed; its text is the answer."
        self.steps.append(StepResult(iteration, reasoning=reasoning))
        return self._result(turn.text, iteration, stop_reason, streamed=self.streamed)

    def _unfinished(self, stop_reason: str, why: str, iterations: int, error: str | None = None) -> AgentResult:
        ran = [(step.tool_name, step.error is None) for step in self.steps if step.tool_name is not None]
        return self._result(prompts.unfinished_text(why, ran), iterations, stop_reason, error=error)

    def _result(
        self, answer: str, iterations: int, stop_reason: str, *, streamed: bool = False, error: str | None = None
    ) -> AgentResult:
        return AgentResult(
            answer,
            self.steps,
            iterations,
            self.spent.usage,
            self.talk.trace,
            stop_reason,
            error,
            streamed=streamed,
            attempt=self.attempt,
        )


def _last_words(limit: str | None) -> list[Message]:
    """What the last call of a run that met a limit is told."""
    return [] if limit is None else [Message.user(prompts.LAST_ANSWER.format(limit=limit.replace("_", " ")))]
