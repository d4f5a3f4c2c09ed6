"""The one writer of a worker process: journal records and durable events of all its runs, committed in groups.

What its runs submit while a group is on its way is the next group, one SQL statement: it counts up each run's `seq`,
writes calls, appends events, and marks interrupts that they report as read and approvals as used; all only if the run
still belongs to the caller's epoch and, where a call starts, only if nobody has stopped the run and neither its person
nor its model is disabled. It keeps the run's sums of money and tokens, too: the start of a call is its reservation, the
end settles it. Applying the same record twice (after a connection broke between commit and answer) changes nothing.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from conversations.cleaning import to_json
from conversations.connection import RETRY_SECONDS, LoopConnection
from conversations.errors import LeaseLost
from conversations.events import KeyedEvent

log = logging.getLogger(__name__)

MAX_GROUP = 200
SUMS = ("cost", "tokens", "reserved_cost", "reserved_tokens")

GATHER_SECONDS = 0.01  # what nobody waits for may wait as long for company

# Why the start of a call is refused though the run is its worker's.
REFUSED = "(run.cancel_requested_at IS NOT NULL OR record.n IN (SELECT n FROM barred))"

# Plain SQL, because this happens several times in each iteration of each run: the ORM would cost more than the work.
# One row of `record` is what one epoch of one run has to write; `starts` marks what belongs to the start of a call.
RECORD = f"""
WITH record AS (
    SELECT * FROM jsonb_to_recordset(%(records)s::jsonb) AS r(
        n int, run uuid, epoch int, progress bool, starts bool, models bigint[],
        cost bigint, tokens bigint, reserved_cost bigint, reserved_tokens bigint)
), barred AS (
    SELECT n FROM record JOIN conversations_run run ON run.id = record.run
    WHERE record.starts AND (NOT EXISTS (
        SELECT 1 FROM accounts_user person WHERE person.id = run.user_id AND person.is_active
    ) OR EXISTS (
        SELECT 1 FROM unnest(record.models) AS asked(id) WHERE NOT EXISTS (
            SELECT 1 FROM tools_admin_languagemodel model JOIN tools_admin_provider provider
                ON provider.id = model.provider_id
            WHERE model.id = asked.id AND model.enabled AND provider.enabled
        )
    ))
), given AS (
    SELECT * FROM ROWS FROM (jsonb_to_recordset(%(events)s::jsonb) AS (
        n int, starts bool, key text, channel text, data jsonb, at timestamptz)) WITH ORDINALITY AS e(
        n, starts, key, channel, data, at, position)
), fresh AS (
    SELECT given.* FROM given JOIN record USING (n) WHERE NOT EXISTS (
        SELECT 1 FROM conversations_runevent known WHERE known.run_id = record.run AND known.key = given.key
    )
), called AS (
    SELECT * FROM jsonb_to_recordset(%(calls)s::jsonb) AS c(
        n int, starts bool, key text, kind text, request jsonb, digest text, effect_class text, state text,
        result jsonb, error text, usage jsonb, cost bigint, started_at timestamptz, ended_at timestamptz)
), fence AS (
    UPDATE conversations_run run SET
        next_seq = next_seq + (SELECT count(*) FROM fresh WHERE fresh.n = record.n AND NOT (starts AND {REFUSED})),
        crashes = CASE WHEN record.progress THEN 0 ELSE crashes END,
        cost = coalesce(record.cost, run.cost), tokens = coalesce(record.tokens, run.tokens),
        reserved_cost = coalesce(record.reserved_cost, run.reserved_cost),
        reserved_tokens = coalesce(record.reserved_tokens, run.reserved_tokens)
    FROM record
    WHERE run.id = record.run AND run.epoch = record.epoch AND run.status = 'running'
    RETURNING record.n, record.run, record.epoch, next_seq, {REFUSED} AS refused, record.starts AND EXISTS (
        SELECT 1 FROM conversations_interrupt said WHERE said.run_id = run.id AND said.state = 'queued'
    ) AS spoken_to
), allowed AS (
    SELECT fence.n, run, at, key, channel, data,
           next_seq - count(*) OVER (PARTITION BY fence.n) - 1
           + row_number() OVER (PARTITION BY fence.n ORDER BY position) AS seq
    FROM fence JOIN fresh ON fresh.n = fence.n AND NOT (starts AND refused)
), recorded AS (
    INSERT INTO conversations_call (run_id, key, kind, request, digest, effect_class, state, result, error,
                                    usage, cost, epoch, started_at, ended_at)
    SELECT run, c.key, c.kind, c.request, c.digest, c.effect_class, c.state, c.result, c.error,
           c.usage, c.cost, epoch, c.started_at, c.ended_at
    FROM fence JOIN called c ON c.n = fence.n AND NOT (starts AND refused)
    ON CONFLICT (run_id, key) DO UPDATE SET
        state = EXCLUDED.state, request = EXCLUDED.request, result = EXCLUDED.result, error = EXCLUDED.error,
        usage = EXCLUDED.usage, cost = EXCLUDED.cost, epoch = EXCLUDED.epoch, ended_at = EXCLUDED.ended_at
), appended AS (
    INSERT INTO conversations_runevent (run_id, seq, channel, data, key, at)
    SELECT run, seq, channel, data, key, at FROM allowed
), admitted AS (
    UPDATE conversations_interrupt interrupt SET state = 'admitted' FROM allowed
    WHERE allowed.channel = 'inject' AND interrupt.run_id = allowed.run AND interrupt.state IN ('queued', 'read')
        AND interrupt.message_id = (allowed.data->>'message_id')::uuid
), consumed AS (
    UPDATE conversations_approval approval SET state = 'consumed'
    FROM fence JOIN called c ON c.n = fence.n AND NOT (starts AND refused)
    WHERE approval.run_id = fence.run AND approval.key = c.key AND approval.state = 'approved'
)
SELECT n, refused, (SELECT json_object_agg(key, seq) FROM allowed WHERE allowed.n = fence.n), spoken_to FROM fence
"""  # noqa: S608 - REFUSED is a literal


@dataclass(slots=True)
class Record:
    """Calls and events of one run, written together or not at all. `starts`: it is the start of a call, of this `model`
    if it is one's.

    `sums` are the run's, settled and reserved (`purse.py`); sums and not differences, so that the same record twice
    changes nothing.
    """

    run: UUID
    epoch: int
    events: list[KeyedEvent]
    calls: list[dict[str, Any]] = field(default_factory=list)
    starts: bool = False
    model: int | None = None
    sums: tuple[int | None, ...] = (None, None, None, None)
    at: datetime = field(default_factory=lambda: datetime.now().astimezone())


class Written(NamedTuple):
    """The `seq` of each event that was new, by its key; and, with the start of a call, whether messages wait for the
    run that it has not taken up."""

    seqs: dict[str, int]
    spoken_to: bool = False


@dataclass(slots=True)
class _Waiting:
    """A record on its way, encoded as far as it can be before its group is known."""

    record: Record
    events: list[bytes]
    calls: list[bytes]
    future: "asyncio.Future[Written]"

    @classmethod
    def of(cls, record: Record) -> "_Waiting":
        common = {"starts": record.starts, "at": record.at}
        events = [to_json({**common, "key": e.key, "channel": e.channel, "data": e.data}) for e in record.events]
        calls = [to_json({"starts": record.starts, **call}) for call in record.calls]
        return cls(record, events, calls, asyncio.get_running_loop().create_future())


class Writer:
    """`submit()` from the worker's loop."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._wake = asyncio.Event()
        self._line = LoopConnection(by_key_only=True)

    def submit(self, record: Record, *, at_once: bool = True) -> "asyncio.Future[Written]":
        """Raises `LeaseLost` (in the future) when the run belongs to another epoch by now, or the call was stopped.

        Records of a run are written in order. What nobody waits for need not be written `at_once`. A record that
        cannot be written as JSON is its caller's fault and raises at once.
        """
        waiting = _Waiting.of(record)
        self._waiting.append(waiting)
        if at_once:
            self._wake.set()
        else:
            asyncio.get_running_loop().call_later(GATHER_SECONDS, self._wake.set)
        return waiting.future

    async def run(self) -> None:
        """Writes for ever; while the database is away the records wait."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._waiting:
                    group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
                    await self._write_until_done(group)
        finally:
            await self._line.drop()

    async def _write_until_done(self, group: list[_Waiting]) -> None:
        while True:
            try:
                await self._write(group)
            except psycopg.OperationalError as error:
                log.warning("The database does not answer (%s); %d records wait.", str(error).strip()[:200], len(group))
                await self._line.drop()
                await asyncio.sleep(RETRY_SECONDS)
            except psycopg.Error as error:
                if len(group) == 1:
                    _settle(group[0].future, error)
                    return
                for single in group:  # one bad record must not take its neighbours with it
                    await self._write_until_done([single])
                return
            else:
                return

    async def _write(self, group: list[_Waiting]) -> None:
        by_run: dict[tuple[UUID, int], list[_Waiting]] = {}
        for waiting in group:
            by_run.setdefault((waiting.record.run, waiting.record.epoch), []).append(waiting)
        together = [by_run[key] for key in sorted(by_run)]  # rows are locked in one order, here as by the heartbeat
        records, events, calls = [], [], []
        for n, ones in enumerate(together):
            newest = ones[-1].record
            progress = any(call["state"] == "succeeded" for one in ones for call in one.record.calls)
            head = {"n": n, "run": newest.run, "epoch": newest.epoch, "progress": progress}
            starts = [one.record for one in ones if one.record.starts]
            asked = sorted({start.model for start in starts if start.model})  # steps side by side may ask several
            head |= {"starts": bool(starts), "models": asked}
            records.append(to_json(head | dict(zip(SUMS, newest.sums, strict=True))))
            place = b'{"n":%d,' % n
            events += [place + event[1:] for one in ones for event in one.events]
            calls += [place + call[1:] for one in ones for call in one.calls]
        connection = await self._line.get()
        parameters = {"records": _array(records), "events": _array(events), "calls": _array(calls)}
        cursor = await connection.execute(RECORD, parameters, prepare=True)
        answers = {
            n: (refused, Written(seqs or {}, spoken_to)) for n, refused, seqs, spoken_to in await cursor.fetchall()
        }
        for n, ones in enumerate(together):
            refused, written = answers.get(n, (True, Written({})))
            for one in ones:
                lost = n not in answers or (refused and one.record.starts)
                _settle(one.future, LeaseLost() if lost else written)


def _array(items: list[bytes]) -> str:
    return (b"[" + b",".join(items) + b"]").decode()


def _settle(future: "asyncio.Future[Written]", outcome: Written | BaseException) -> None:
    if future.cancelled():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
