"""A comparison in the hands of a worker: one attempt after the other, so that none waits for another one."""

import asyncio
import contextlib
import json
import logging
from itertools import product
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from agentapp.database import in_thread
from agentapp.engine.comparison import Attempt, Task, attempt
from agentapp.engine.comparison.attempts import used_of
from conversations.cleaning import clean, to_json
from conversations.comparison import services
from conversations.comparison.building import Bench, CannotGoOn, bench, equip
from conversations.comparison.money import charge
from conversations.models import Comparison, ComparisonAttempt
from conversations.patience import patiently
from conversations.permission import Permissions
from tools_admin.clients import ModelClients

log = logging.getLogger(__name__)

# A place of the comparison whose attempt broke off so often is left: the worker may die of it.
MOST_BROKEN_OFF = 3
MOST_UNREACHED = 5
Status, Outcome = Comparison.Status, ComparisonAttempt.Outcome


class Lost(Exception):
    """The comparison is another worker's by now."""


class ComparisonExecution:
    """One claim of a comparison. Cancelling its task puts the comparison back into the queue."""

    def __init__(self, row: Comparison, clients: ModelClients, permissions: Permissions) -> None:
        self._row, self._clients, self._permissions = row, clients, permissions
        self._tasks = {task["id"]: Task.from_dict(task) for task in row.tasks}
        self._stopped = self._lost = False
        self._current: asyncio.Task[Any] | None = None
        self._at_work: tuple[ComparisonAttempt, Bench] | None = None

    async def execute(self) -> None:
        beat = asyncio.create_task(self._beat())
        try:
            await self._work()
        except Lost:
            log.info("Comparison %s belongs to another worker now.", self._row.id)
        except CannotGoOn as why:
            await self._end(Status.FAILED, str(why))
        except asyncio.CancelledError:
            await self._put_back()
            raise
        except Exception:
            log.exception("Comparison %s failed", self._row.id)
            await self._end(Status.FAILED, "Something went wrong inside. An administrator finds it in the log.")
        finally:
            beat.cancel()

    async def _work(self) -> None:
        unreached = 0
        while True:
            if self._stopped:
                return await self._end(Status.STOPPED)
            place = await patiently(next_place, self._row)
            if place is None:
                return await self._end(Status.COMPLETED)
            self._current = asyncio.create_task(self._attempt(*place))
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([self._current])
                unreached = unreached + 1 if self._current.result() else 0
            if self._lost:
                raise Lost
            if (me := asyncio.current_task()) and me.cancelling():
                raise asyncio.CancelledError
            if unreached >= MOST_UNREACHED:
                raise CannotGoOn(f"The model could not be reached in {unreached} attempts in a row.")

    async def _attempt(self, task_id: str, route: str, repeat: int) -> bool:
        """One attempt, from its row to its figures. Whether the model could not be reached."""
        task = self._tasks[task_id]
        kit = await patiently(equip, self._row, task, self._clients)
        made = await bench(self._row, task, route, kit, self._permissions)
        row = await patiently(_begin, self._row, task_id, route, repeat)
        self._at_work = row, made
        try:
            done = await attempt(made.agent, task, made.faulty, made.journal, judge=kit.judge, price=made.price)
        except asyncio.CancelledError:
            _take_figures(row, made)
            await patiently(_broke_off, self._row, row, "It was stopped.")
            raise
        finally:
            self._at_work = None
        _take_figures(row, made)
        _take_result(row, made, task, done)
        await patiently(_finish, self._row, row)
        return done.unavailable

    async def _beat(self) -> None:
        """Keeps the comparison, looks whether it was stopped, and puts on record what the attempt has used so far."""
        while True:
            await asyncio.sleep(settings.RUN_HEARTBEAT_SECONDS)
            try:
                held, stopped = await in_thread(services.renew, self._row.id, self._row.epoch)
                if self._at_work:
                    row, made = self._at_work
                    _take_figures(row, made)
                    await in_thread(_keep_figures, row)
            except DatabaseError as error:
                log.warning("The database does not answer (%s).", str(error).strip()[:200])
                continue
            self._lost, self._stopped = not held, stopped
            if (self._lost or stopped) and self._current:
                self._current.cancel()

    async def _end(self, status: Comparison.Status, reason: str = "") -> None:
        def end() -> None:
            with transaction.atomic():
                if (row := _held(self._row)) is not None:
                    services.break_off(row, "The comparison ended.")
                    services.finish(row, status, reason)

        await patiently(end)

    async def _put_back(self) -> None:
        def put_back() -> None:
            with transaction.atomic():
                if (row := _held(self._row)) is not None:
                    services.break_off(row, "Its worker was asked to go.")
                    row.status, row.lease_expires_at, row.enqueued_at = Status.QUEUED, None, timezone.now()
                    row.save(update_fields=["status", "lease_expires_at", "enqueued_at"])

        if self._current:
            self._current.cancel()
            await asyncio.wait([self._current])
        await asyncio.shield(patiently(put_back))


async def execute(comparison_id: UUID, clients: ModelClients, permissions: Permissions) -> None:
    """Works on a comparison if nobody else does."""
    row = await in_thread(services.claim, comparison_id)
    if row is not None:
        await ComparisonExecution(row, clients, permissions).execute()


def next_place(comparison: Comparison) -> tuple[str, str, int] | None:
    """Task, route and repeat of the next attempt. Routes take turns, so that half a comparison compares, too."""
    seen: dict[tuple[str, str, int], int] = {}
    whole = MOST_BROKEN_OFF
    for task, route, repeat, outcome in comparison.attempts.values_list("task", "route", "repeat", "outcome"):
        place = (task, route, repeat)
        seen[place] = seen.get(place, 0) + (1 if outcome == Outcome.BROKEN_OFF else whole)
    names = [task["id"] for task in comparison.tasks]
    places = product(range(1, comparison.repeats + 1), names, comparison.routes)
    ordered = ((task, route, repeat) for repeat, task, route in places)
    return next((place for place in ordered if seen.get(place, 0) < whole), None)


def _held(comparison: Comparison) -> Comparison | None:
    rows = Comparison.objects.select_for_update().filter(id=comparison.id, epoch=comparison.epoch)
    return rows.filter(status=Status.RUNNING).first()


def _begin(comparison: Comparison, task: str, route: str, repeat: int) -> ComparisonAttempt:
    with transaction.atomic():
        if _held(comparison) is None:
            raise Lost
        try:
            return ComparisonAttempt.objects.create(comparison=comparison, task=task, route=route, repeat=repeat)
        except IntegrityError:
            raise Lost from None


def _finish(comparison: Comparison, row: ComparisonAttempt) -> None:
    with transaction.atomic():
        if _held(comparison) is None:
            raise Lost
        row.ended_at = timezone.now()
        row.save()
        charge(comparison, row)


def _broke_off(comparison: Comparison, row: ComparisonAttempt, why: str) -> None:
    row.outcome, row.error = Outcome.BROKEN_OFF, why
    with contextlib.suppress(Lost):
        _finish(comparison, row)


def _keep_figures(row: ComparisonAttempt) -> None:
    names = ("model_calls", "tool_calls", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost")
    known = {name: getattr(row, name) for name in names}
    ComparisonAttempt.objects.filter(pk=row.pk, outcome=Outcome.RUNNING).update(**known)


def _take_figures(row: ComparisonAttempt, made: Bench) -> None:
    used = used_of(made.journal, made.price)
    row.model_calls, row.tool_calls, row.cost = used.usage.calls, used.tool_calls, used.cost
    row.input_tokens, row.cached_tokens = used.usage.input_tokens, used.usage.cached_tokens
    row.output_tokens, row.reasoning_tokens = used.usage.output_tokens, used.usage.reasoning_tokens


def _take_result(row: ComparisonAttempt, made: Bench, task: Task, done: Attempt) -> None:
    row.outcome, row.recovery, row.seconds = done.outcome, done.recovery, round(done.seconds, 4)
    row.fault = task.fault.kind if task.fault and made.faulty.injected else ""
    row.answer, row.why, row.error = clean(done.answer), clean(done.why)[:500], clean(done.error)[:500]
    row.trace = json.loads(to_json(clean(done.trace)))  # models write what no column takes, such as NaN
    row.judge_tokens = done.judge_usage.input_tokens + done.judge_usage.output_tokens
    row.judge_cost = made.judge_price(done.judge_usage)
