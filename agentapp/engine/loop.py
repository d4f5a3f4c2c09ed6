"""The tool loop of one run: ask, interpret, act, until there is an answer or a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import prompts
from .asking import Asking, Progress
from .conversation import Conversation
from .dialects import Judged, Turn
from .errors import ContextOverflow, LimitReached, ModelError, OutOfTime
from .history import first_messages
from .interrupts import InterruptQueue
from .journal import CallKind
from .limits import Spent
from .loop_guard import LoopGuard
from .messages import Content, Message
from .observations import Observations
from .results import AgentResult, StepResult, tool_steps
from .scope import Scope
from .toolbox import Toolbox
from .tools import cut_text

if TYPE_CHECKING:
    from .react import ReActAgent


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
        self.observations = Observations()
        self.progress = Progress()

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
        self.asking = Asking(
            agent, self.root, self.scope, self.interrupts, self.spent, self.tools, self.talk, self.progress
        )

    async def _iterate(self, iteration: int, *, is_last: bool) -> AgentResult | None:
        """One model call and what follows from it. At a limit it is the last one, without tools."""
        limit = self.spent.reached()
        try:
            with self.spent.model_call():
                try:
                    judged = await self.asking.ask(iteration, limit, is_last=is_last)
                except LimitReached as reached:
                    if limit is not None:  # not even the last answer
                        raise
                    limit = reached.limit
                    judged = await self.asking.ask(iteration, limit, is_last=is_last)
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

    async def _act(self, iteration: int, judged: Judged, *, is_last: bool) -> AgentResult | None:
        turn = judged.turn
        if judged.accepted:
            return self._final(iteration, turn)
        if turn.kind == "tools":
            return await self._use_tools(iteration, turn, is_last)
        if turn.kind == "final":
            self.talk.say_reply(turn.message)
            if judged.check:
                self.progress.checked = True
                self.talk.say(Message.user(prompts.CHECKLIST))
            return None
        if turn.kind == "empty" and self.progress.failed_replies:
            return self._unfinished("no_answer", "the model gave no answer", iteration)
        self.progress.failed_replies += 1
        if turn.message.text.strip():
            self.talk.say_reply(turn.message)
        self.talk.say(Message.user(prompts.REFORMAT if self.tools.dialect.json_contract else prompts.NUDGE))
        return None

    async def _use_tools(self, iteration: int, turn: Turn, is_last: bool) -> AgentResult | None:
        self.progress.failed_replies = 0
        results = await self.tools.run(iteration, turn.calls, self._refusals(turn))
        self.progress.tool_turns += 1
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
        if every and self.progress.tool_turns % every == 0 and not is_last:
            goal = cut_text(Message.user(self.query).text, 2_000)
            self.talk.say(Message.user(prompts.REFLECTION.format(turns=self.progress.tool_turns, query=goal)))
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
        return self._result(turn.text, iteration, stop_reason, streamed=self.asking.streamed)

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
            attempt=self.asking.attempt,
        )
