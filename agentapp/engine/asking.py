"""A model call of the loop: what is sent, what is recorded of it, and what the reply means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from . import events, prompts
from .context import Compaction
from .conversation import Conversation
from .dialects import Judged, Turn
from .errors import ContextOverflow
from .interrupts import InterruptQueue, images_of, interrupt_message
from .journal import CallKind
from .limits import Spent
from .messages import Completion, Content, Message
from .model_call import complete
from .scope import Scope, llm_request
from .streaming import AnswerWriter
from .toolbox import Toolbox

if TYPE_CHECKING:
    from .react import ReActAgent

CHECKLIST_CHARS = 800


@dataclass(slots=True)
class Progress:
    """How far a run has come, as far as it decides what the next reply means."""

    tool_turns: int = 0
    failed_replies: int = 0
    checked: bool = False


class Asking:
    """The model calls of one run. Like the loop's, its state follows from recorded results."""

    def __init__(
        self,
        agent: ReActAgent,
        root: Scope,
        scope: Scope,
        interrupts: InterruptQueue,
        spent: Spent,
        tools: Toolbox,
        talk: Conversation,
        progress: Progress,
    ) -> None:
        self.agent = agent
        self.model = agent.model
        self.root = root
        self.scope = scope
        self.interrupts = interrupts
        self.spent = spent
        self.tools = tools
        self.talk = talk
        self.progress = progress
        self.waiting: list[str] = []
        self.held = False
        self.streamed = False
        self.attempt = 0

    async def ask(self, iteration: int, limit: str | None, *, is_last: bool) -> Judged:
        """One model call within the context; a provider that finds it too long gets half of it, once a run."""
        options = {} if limit else self.tools.dialect.options(self.progress.tool_turns)
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

    def _fail_as_before(self, iteration: int, *, shrunk: bool) -> None:
        """A call without a record that something later has been recorded of was too long, and is not made again."""
        later = ("end",) if shrunk else ("end", "overflow/llm/0")
        went_on = any(self.scope.recorded(f"{iteration}/{name}") for name in later)
        if went_on and not self.scope.recorded(f"{iteration}/llm"):
            raise ContextOverflow("the first time it was too long")

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
            interrupts = self._interrupt_messages([item.to_dict() for item in admitted])
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
            "interrupts": [item.to_dict() for item in admitted],
            "early": early,
            "waiting": self.interrupts.ids,
            "shrunk": shrunk,
            "elapsed": round(max(0.0, self.agent.time() - begun), 6),
        }

    async def _complete(self, messages: Sequence[Message], options: dict[str, Any], writer: AnswerWriter) -> Completion:
        speaks = self.agent.stream_direct and self.tools.dialect.speaks(self.progress.tool_turns)
        streams = speaks and bool(self.model.abilities.get("streaming"))
        patience = self.spent.seconds_left
        return await complete(self.model, messages, options, self.agent.retry, patience, writer if streams else None)

    def _interrupt_messages(self, items: Sequence[dict[str, Any]]) -> list[Message]:
        if items:
            message = interrupt_message([item["text"] for item in items])
            images = images_of(items)
            content: Content = [{"type": "text", "text": message.text}, *images] if images else message.content
            return [replace(message, content=content)]
        # A final reply was held back for an interrupt that has been recalled since.
        return [Message.user(prompts.RECALLED)] if self.held else []

    def _judge(self, iteration: int, record: dict[str, Any], is_last: bool) -> Judged:
        completion = Completion.from_dict(record)
        turn = self.tools.dialect.read(completion, iteration)
        message = replace(turn.message, author=record["model"])
        turn = replace(turn, message=message if message.author == self.model.name else message.without_metadata())
        is_last = is_last or record["limit"] is not None
        final = turn.kind == "final" or (turn.kind == "unparseable" and (is_last or self.progress.failed_replies > 0))
        free = final and (is_last or not record["waiting"])
        check = free and not is_last and self._wants_check(turn)
        return Judged(completion, turn, free and not check, check, record["limit"])

    def _wants_check(self, turn: Turn) -> bool:
        due = 0 < self.agent.checklist_from <= self.progress.tool_turns and not self.progress.checked
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
        self.talk.admit(self._interrupt_messages(record["interrupts"]), early=record["early"])
        self.talk.say(*_last_words(judged.limit))
        self.talk.mark_recorded()
        self.waiting = record["waiting"]
        self.held = judged.turn.kind == "final" and not judged.accepted and not judged.check


def _last_words(limit: str | None) -> list[Message]:
    """What the last call of a run that met a limit is told."""
    return [] if limit is None else [Message.user(prompts.LAST_ANSWER.format(limit=limit.replace("_", " ")))]
