"""The engine's journal as rows: what happened stands in `Call`, what people see of it in `RunEvent`.

Read `agentapp.engine.journal` first: this is the durable implementation of that protocol.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from agentapp.engine import CallKind, EffectClass, Event, IncompleteStream, ModelError, UnknownOutcome, Usage
from agentapp.engine.journal import Effect, Finished, check_same_call
from conversations import crash_points
from conversations.allotments import Amount
from conversations.appender import RunLog
from conversations.artifacts import store_files
from conversations.cleaning import clean
from conversations.endings import STOPPED
from conversations.errors import LeaseLost
from conversations.events import KeyedEvent
from conversations.models import Call, Run
from conversations.open_calls import Open
from conversations.pricing import Pricing
from conversations.purse import Purse
from conversations.writer import Record, Writer, Written

DELEGATION_START = "/start"

# Of the call whose effect is happening.
_key: ContextVar[str] = ContextVar("call_key")


class DatabaseJournal:
    """One run's journal in one epoch, which outlives its process. `records` holds what earlier epochs recorded."""

    durable = True

    def __init__(
        self,
        run: UUID,
        epoch: int,
        writer: Writer,
        log: RunLog,
        records: dict[str, Call],
        attempt: int,
        purse: Purse,
        pricing: Pricing,
    ) -> None:
        self.run = run
        self.epoch = epoch
        self.attempt = attempt
        self.purse = purse
        self.open: dict[str, Open] = {}
        self.before_model: Callable[[bool], Awaitable[None]] | None = None  # is told whether messages wait for the run
        self._writer = writer
        self._log = log
        self._records = records
        self._pricing = pricing
        self._failures = 0
        self._last_failure: ModelError | None = None
        self._delegations: dict[str, Open] = {}
        self._unwaited: list[asyncio.Future[Written]] = []
        self._last: asyncio.Future[Written] | None = None

    @classmethod
    def load(
        cls, run: Run, writer: Writer, log: RunLog, purse: Purse, pricing: Pricing, *, resumed: bool = True
    ) -> "DatabaseJournal":
        """Reads what earlier epochs left, if anything (synchronous: call it in a database thread)."""
        records = {call.key: call for call in run.calls.all()} if resumed else {}
        attempt = run.events.filter(channel="answer", data__status="start").count() if run.epoch > 1 else 0
        return cls(run.id, run.epoch, writer, log, records, attempt, purse, pricing)

    def recorded(self, key: str) -> bool:
        call = self._records.get(key)
        return call is not None and (call.state == Call.State.SUCCEEDED or call.effect_class == EffectClass.ONCE)

    async def call(
        self,
        key: str,
        kind: CallKind,
        request: dict[str, Any],
        effect: Effect,
        *,
        effect_class: EffectClass = EffectClass.READ,
        started: Iterable[Event] = (),
        finished: Finished | None = None,
    ) -> dict[str, Any]:
        request = clean(request)
        self._follow_delegation(key, request)
        known = self._records.get(key)
        if known is not None:
            check_same_call(key, kind, known.request, request)
            if known.state == Call.State.SUCCEEDED:
                return known.result or {}
            if known.effect_class == EffectClass.ONCE:
                raise UnknownOutcome(key)
        self.open[key] = call = Open(kind, request, effect_class, datetime.now(UTC), list(started))
        await self._start(key, call)
        crash_points.before(kind)
        try:
            result = clean(await self._happen(key, effect))
            if result.get("artifacts"):
                result = await store_files(self.run, key, result)
        except ModelError as error:
            if self._last_failure not in (error, error.__cause__):
                await self._record_failure(key, request.get("model", ""), error)
            self.purse.settle(key, Amount())  # what its tries took is spent
            del self.open[key]
            raise
        crash_points.done(kind)
        price = self._pricing.price(kind, result, self.purse.reserved(key))
        self.purse.settle(key, price)
        events = [self._stamped(event) for event in finished(result)] if finished else []
        record = self._submit(
            [KeyedEvent.of(f"{key}#{len(call.started) + n}", event) for n, event in enumerate(events)],
            [call.row(key, Call.State.SUCCEEDED, result=result, cost=price.cost)],
            at_once=call.waits,
        )
        if call.waits:
            await self._written(record)
        else:
            self._unwaited.append(record)
        del self.open[key]
        crash_points.recorded(kind, len(self.open))
        return result  # type: ignore[no-any-return]

    def note(self, key: str, event: Event) -> None:
        """Stores a durable event that belongs to no record, in order, without waiting."""
        self._submit([KeyedEvent.of(key, event)], at_once=event.channel == "answer")

    def begin_answer(self) -> int:
        """A new attempt at the answer: the text streamed before it, if any, no longer counts."""
        self.attempt += 1
        self.note(f"answer/{self.attempt}", Event("answer", {"status": "start", "attempt": self.attempt}))
        return self.attempt

    def closing(self) -> list[dict[str, Any]]:
        """Rows of the calls on their way, for a run that is stopped now, delegations among them: settled at what was
        set aside for them."""
        broken_off = {**self._delegations, **self.open}
        return [self._broken_off(key, key, call, Call.State.CANCELLED, STOPPED) for key, call in broken_off.items()]

    def _follow_delegation(self, key: str, request: dict[str, Any]) -> None:
        """A call that is delegated has its start and its end on record as two effects, and is open between them."""
        if key.endswith(DELEGATION_START):
            begun = Open(CallKind.TOOL, request, EffectClass.PURE, datetime.now(UTC), [])
            self._delegations[key.removesuffix(DELEGATION_START)] = begun
        else:
            self._delegations.pop(key, None)

    async def _start(self, key: str, call: Open) -> None:
        """Reserves what the call may cost, and puts its start on record.

        Raises `LeaseLost` when it must not begin, as the run was stopped, is somebody else's, or its person or model is
        disabled; `BudgetExhausted`.
        """
        if call.kind is CallKind.LLM:
            try:
                await self.purse.reserve(
                    key, self._pricing.estimate(call.request), last=call.request.get("last", False)
                )
            except BaseException:
                del self.open[key]
                raise
        priced = self.purse.reserved(key) != Amount()
        waits = call.waits or priced
        intent = self._submit(
            [KeyedEvent.of(f"{key}#{n}", event) for n, event in enumerate(call.started)],
            [call.row(key, Call.State.STARTED)] if call.effect_class is EffectClass.ONCE else [],
            starts=waits,
            model=self._pricing.model_id(call.request) if call.kind is CallKind.LLM else None,
            at_once=waits,
        )
        if waits:
            try:
                await self._written(intent)
            except LeaseLost:
                del self.open[key]  # it never began
                self.purse.settle(key, Amount())
                raise
        if self.before_model and call.request.get("role") in ("loop", "interrupts"):
            await self.before_model(intent.result().spoken_to)

    async def attempt_failed(self, model: str, error: ModelError) -> None:
        """Records a try of the call under way that failed, and sets as much aside for the next one.

        Raises `BudgetExhausted`, `LeaseLost`.
        """
        key = _key.get()
        need = self.purse.reserved(key)
        if await self._record_failure(key, model, error):
            await self.purse.reserve(key, need, last=True)

    async def _happen(self, key: str, effect: Effect) -> dict[str, Any]:
        token = _key.set(key)
        try:
            return await effect()
        finally:
            _key.reset(token)

    async def _record_failure(self, key: str, model: str, error: ModelError) -> bool:
        """Whether it is paid for: nobody is billed for a refusal, a reply that broke off was worked on."""
        self._last_failure = error
        self._failures += 1
        call, name = self.open[key], f"{key}/failed/{self.epoch}.{self._failures}"
        request = {**call.request, "model": model, "messages": []}  # the call itself has them
        failed, text = replace(call, request=request), f"{type(error).__name__}: {error}"
        worked = isinstance(error, IncompleteStream)
        if worked:
            row = self._broken_off(name, key, failed, Call.State.FAILED, text)
        else:
            row = failed.row(name, Call.State.FAILED, error=text)
        await self._written(self._submit([], [row]))
        return worked

    def _broken_off(self, name: str, key: str, call: Open, state: Call.State, error: str) -> dict[str, Any]:
        taken = self.purse.reserved(key)
        self.purse.settle(key, taken)
        row = call.row(name, state, error=error, cost=taken.cost)
        if taken.tokens:
            row["usage"] = Usage(taken.tokens, calls=1, estimated=True).to_dict()
        return row

    async def settled(self) -> None:
        """Returns when everything that was submitted is written, or refused."""
        if self._last is not None:
            await asyncio.wait([self._last])

    async def _written(self, record: "asyncio.Future[Written]") -> None:
        """Waits for the record and those before it; a stop in this moment does not take it back."""
        unwaited, self._unwaited = self._unwaited, []
        await asyncio.shield(asyncio.gather(*unwaited, record))

    def _stamped(self, event: Event) -> Event:
        """The engine counts attempts from 1 in each process; the run counts them all."""
        if event.channel == "answer":
            return Event("answer", {**event.data, "attempt": self.attempt})
        return event

    def _submit(
        self,
        events: list[KeyedEvent],
        calls: Iterable[dict[str, Any]] = (),
        *,
        starts: bool = False,
        at_once: bool = True,
        model: int | None = None,
    ) -> "asyncio.Future[Written]":
        record = Record(self.run, self.epoch, events, list(calls), starts, model, self.purse.sums)
        if not (record.events or record.calls or starts):
            done: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
            done.set_result(Written({}))
            return done
        self._last = future = self._writer.submit(record, at_once=at_once)
        if events:
            self._log.events(future, record)
        else:
            future.add_done_callback(lambda f: f.cancelled() or f.exception())
        return future
