"""A journal bound to a place in the run, and a model that goes through it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from .errors import ModelUnavailable
from .events import Emit, Event, send
from .journal import CallKind, Effect, EffectClass, Finished, Journal, MemoryJournal
from .messages import Chunk, Completion, Message, Usage
from .models import ChatModel, ToolDefinitions
from .tokens import estimate_tokens

# Of one helper, such as the ladder of structured calls.
MOST_CALLS = 5


@dataclass(frozen=True, slots=True)
class Scope:
    """Prefixes keys, and hands the events of effects that really happen to `emit`.

    A part of a larger work marks its steps with what it is a part of and does not speak to the user. Of an agent that
    works for another only the tool calls are told.
    """

    journal: Journal
    emit: Emit | None = None
    prefix: str = ""
    marks: Mapping[str, str] = field(default_factory=dict)
    only_calls: bool = False

    def child(self, name: str) -> Scope:
        return replace(self, prefix=self.key(name)) if name else self

    def of_agent(self, name: str, call_id: str) -> Scope:
        return replace(self.child(name), marks={**self.marks, "parent_call_id": call_id}, only_calls=True)

    def of_step(self, name: str, step_id: str) -> Scope:
        return replace(self.child(name), marks={**self.marks, "step_id": step_id})

    @property
    def voice(self) -> Emit | None:
        """Where the text of an answer goes: to the user, or to nobody."""
        return None if self.marks else self.emit

    def _told(self, events: Iterable[Event]) -> Sequence[Event]:
        if not self.marks:
            return tuple(events)
        return [event for event in map(self._marked, events) if event is not None]

    def _marked(self, event: Event) -> Event | None:
        if event.channel != "step":
            return None if self.only_calls or event.channel == "answer" else event
        if event.data["type"] not in (("iteration",) if self.only_calls else ("iteration", "thinking")):
            return None
        return replace(event, data={**event.data, **self.marks})

    def key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name

    def recorded(self, name: str) -> bool:
        """Whether the effect of this call will not run. A journal that cannot tell has its gate asked again."""
        peek = getattr(self.journal, "recorded", None)
        return peek is not None and bool(peek(self.key(name)))

    def has_passed(self, iteration: int) -> bool:
        """Whether this iteration of a loop has its reply, or its end without one."""
        return self.recorded(f"{iteration}/llm") or self.recorded(f"{iteration}/end")

    async def now(self, clock: Callable[[], datetime] | None) -> datetime | None:
        """The time at which the run began, read once."""
        if clock is None:
            return None

        async def effect() -> dict[str, Any]:
            return {"now": clock().isoformat()}

        return datetime.fromisoformat((await self.call("clock/0", CallKind.CLOCK, {}, effect))["now"])

    async def call(
        self,
        name: str,
        kind: CallKind,
        request: dict[str, Any],
        effect: Effect,
        *,
        effect_class: EffectClass = EffectClass.READ,
        started: Sequence[Event] = (),
        finished: Finished | None = None,
    ) -> dict[str, Any]:
        """`Journal.call` under the prefix. A replay emits nothing."""
        happened = False
        started = self._told(started)

        async def observed() -> dict[str, Any]:
            nonlocal happened
            happened = True
            for event in started:
                await send(self.emit, event)
            return await effect()

        ended: list[Event] = []

        def finished_once(result: dict[str, Any]) -> Iterable[Event]:
            ended[:] = self._told(finished(result) if finished else ())
            return ended

        result = await self.journal.call(
            self.key(name),
            kind,
            request,
            observed,
            effect_class=effect_class,
            started=started,
            finished=finished_once,
        )
        if happened:
            for event in ended:
                await send(self.emit, event)
        return result


def llm_request(
    model: ChatModel,
    messages: Iterable[Message],
    before: int,
    role: str,
    options: Mapping[str, Any],
    size: int,
    *,
    last: bool = False,
) -> dict[str, Any]:
    """What the journal keeps of a request: the messages that no earlier call of this scope has recorded.

    `size` is what all of it takes, in estimated tokens. The `last` call of a run that met a limit says so.
    """
    tools = options.get("tools") or ()
    return {
        "model": model.name,
        "role": role,
        "messages": [message.to_dict() for message in messages],
        "messages_before": before,
        "tools": [definition["function"]["name"] for definition in tools],
        "tool_choice": options.get("tool_choice"),
        "response_format": options.get("response_format"),
        "size": size,
        "last": last,
    }


class JournaledModel:
    """A model whose calls are `<scope>/llm/<n>` in a journal. It sums up their usage.

    `announcement` is sent with the first of them. Whoever asks it goes on after a model error, which leaves no
    record. So where a later call is on record, or `is_over` says that the run has gone on, a call without a record
    is one that failed, and fails again instead of being made.
    """

    def __init__(
        self,
        model: ChatModel,
        scope: Scope,
        role: str,
        announcement: Event | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._model = model
        self._scope = scope
        self._role = role
        self._announcement = announcement
        self._is_over = is_over
        self._calls = 0
        self.usage = Usage()
        self.name = model.name
        self.abilities = model.abilities
        self.context_size = model.context_size
        self.max_output_tokens = model.max_output_tokens

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> Completion:
        options = {"tools": tools, "tool_choice": tool_choice, "response_format": response_format}
        name = f"llm/{self._calls}"
        self._calls += 1
        if not self._scope.recorded(name) and (self._is_over() or self._has_later_record()):
            raise ModelUnavailable("this call failed the first time")

        async def effect() -> dict[str, Any]:
            completion = await self._model.chat(
                messages, tools=tools, tool_choice=tool_choice, response_format=response_format
            )
            return {**completion.to_dict(), "model": self._model.name}

        started = () if self._announcement is None else (self._announcement,)
        self._announcement = None
        size = estimate_tokens(messages, tools or ())
        request = llm_request(self._model, messages, 0, self._role, options, size)
        result = await self._scope.call(name, CallKind.LLM, request, effect, started=started)
        completion = Completion.from_dict(result)
        self.usage += completion.usage
        return completion

    def _has_later_record(self) -> bool:
        return any(self._scope.recorded(f"llm/{n}") for n in range(self._calls, self._calls + MOST_CALLS))

    async def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> AsyncIterator[Chunk]:
        """A journaled reply is whole, so it comes as one piece."""
        done = await self.chat(messages, tools=tools, tool_choice=tool_choice, response_format=response_format)
        yield Chunk(done.message.text, done.message.reasoning, done.finish_reason, done.usage, done.message)


def journaled(
    model: ChatModel, journal: Journal | None, scope: str, role: str, is_over: Callable[[], bool] = lambda: False
) -> JournaledModel:
    """For functions that take `journal=None, scope=""`."""
    return JournaledModel(model, Scope(journal or MemoryJournal(), prefix=scope), role, is_over=is_over)
