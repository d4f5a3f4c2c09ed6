"""The one writer of a worker process: journal records and durable events of all its runs, committed in groups.

Each caller waits for the commit that holds its record. A record is one SQL statement: it counts up the run's `seq`,
writes the call, appends the events, and marks interrupts that they report as read and approvals as used; all only if
the run still belongs to the caller's epoch and, where a call starts, only if nobody has stopped the run. Applying the
same record twice (after a connection broke between commit and answer) changes nothing.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from conversations.cleaning import to_json
from conversations.connection import RETRY_SECONDS, LoopConnection
from conversations.errors import LeaseLost
from conversations.events import KeyedEvent

log = logging.getLogger(__name__)

MAX_GROUP = 200

RECORD = """
WITH given AS (
    SELECT e->>'key' AS key, e->>'channel' AS channel, e->'data' AS data, position
    FROM jsonb_array_elements(%(events)s::jsonb) WITH ORDINALITY AS given(e, position)
), fresh AS (
    SELECT key, channel, data, row_number() OVER (ORDER BY position) - 1 AS place FROM given
    WHERE NOT EXISTS (
        SELECT 1 FROM conversations_runevent known WHERE known.run_id = %(run)s AND known.key = given.key
    )
), fence AS (
    UPDATE conversations_run SET next_seq = next_seq + (SELECT count(*) FROM fresh),
        crashes = CASE WHEN %(calls)s::jsonb @> '[{"state": "succeeded"}]' THEN 0 ELSE crashes END
    WHERE id = %(run)s AND epoch = %(epoch)s AND status = 'running'
        AND NOT (%(starts)s AND cancel_requested_at IS NOT NULL)
    RETURNING next_seq - (SELECT count(*) FROM fresh) AS first_seq
), recorded AS (
    INSERT INTO conversations_call (run_id, key, kind, request, digest, effect_class, state, result, error,
                                    usage, cost, epoch, started_at, ended_at)
    SELECT %(run)s, c.key, c.kind, c.request, c.digest, c.effect_class, c.state, c.result, c.error,
           c.usage, c.cost, %(epoch)s, c.started_at, c.ended_at
    FROM fence, jsonb_to_recordset(%(calls)s::jsonb) AS c(
        key text, kind text, request jsonb, digest text, effect_class text, state text, result jsonb, error text,
        usage jsonb, cost bigint, started_at timestamptz, ended_at timestamptz)
    ON CONFLICT (run_id, key) DO UPDATE SET
        state = EXCLUDED.state, request = EXCLUDED.request, result = EXCLUDED.result, error = EXCLUDED.error,
        usage = EXCLUDED.usage, cost = EXCLUDED.cost, epoch = EXCLUDED.epoch, ended_at = EXCLUDED.ended_at
    RETURNING 1
), appended AS (
    INSERT INTO conversations_runevent (run_id, seq, channel, data, key, at)
    SELECT %(run)s, fence.first_seq + fresh.place, fresh.channel, fresh.data, fresh.key, %(at)s FROM fence, fresh
    RETURNING seq, key
), admitted AS (
    UPDATE conversations_interrupt interrupt SET state = 'admitted' FROM fence, fresh
    WHERE fresh.channel = 'inject' AND interrupt.run_id = %(run)s AND interrupt.state IN ('queued', 'read')
        AND interrupt.message_id = (fresh.data->>'message_id')::uuid
), consumed AS (
    UPDATE conversations_approval approval SET state = 'consumed'
    FROM fence, jsonb_to_recordset(%(calls)s::jsonb) AS c(key text)
    WHERE approval.run_id = %(run)s AND approval.key = c.key AND approval.state = 'approved'
)
SELECT (SELECT first_seq FROM fence), (SELECT json_agg(json_build_array(seq, key)) FROM appended)
"""


@dataclass(slots=True)
class Record:
    """Calls and events of one run, written together or not at all. `starts`: it is the start of a call."""

    run: UUID
    epoch: int
    events: list[KeyedEvent]
    calls: list[dict[str, Any]] = field(default_factory=list)
    starts: bool = False
    at: datetime = field(default_factory=lambda: datetime.now().astimezone())

    def parameters(self) -> dict[str, Any]:
        events = [{"key": e.key, "channel": e.channel, "data": e.data} for e in self.events]
        return {
            "run": self.run,
            "epoch": self.epoch,
            "at": self.at,
            "starts": self.starts,
            "events": to_json(events).decode(),
            "calls": to_json(self.calls).decode(),
        }


class Writer:
    """`submit()` from the worker's loop; the future gives the `seq` of each event that was new, by its key."""

    def __init__(self) -> None:
        self._waiting: list[tuple[dict[str, Any], asyncio.Future[dict[str, int]]]] = []
        self._wake = asyncio.Event()
        self._line = LoopConnection()

    def submit(self, record: Record) -> "asyncio.Future[dict[str, int]]":
        """Raises `LeaseLost` (in the future) when the run belongs to another epoch by now, or the call was stopped.

        A record that cannot be written as JSON is its caller's fault and raises at once.
        """
        future: asyncio.Future[dict[str, int]] = asyncio.get_running_loop().create_future()
        self._waiting.append((record.parameters(), future))
        self._wake.set()
        return future

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

    async def _write_until_done(self, group: list[tuple[dict[str, Any], "asyncio.Future[dict[str, int]]"]]) -> None:
        while True:
            try:
                rows = await self._write([parameters for parameters, _ in group])
            except psycopg.OperationalError as error:
                log.warning("The database does not answer (%s); %d records wait.", str(error).strip()[:200], len(group))
                await self._line.drop()
                await asyncio.sleep(RETRY_SECONDS)
            except psycopg.Error as error:
                if len(group) == 1:
                    _settle(group[0][1], error)
                    return
                for single in group:  # one bad record must not take its neighbours with it
                    await self._write_until_done([single])
                return
            else:
                for (_, future), (first_seq, appended) in zip(group, rows, strict=True):
                    _settle(future, LeaseLost() if first_seq is None else {key: seq for seq, key in appended or ()})
                return

    async def _write(self, records: list[dict[str, Any]]) -> list[tuple[int | None, list[tuple[int, str]] | None]]:
        connection = await self._line.get()
        async with connection.transaction(), connection.pipeline():
            cursors = [await connection.execute(RECORD, parameters, prepare=True) for parameters in records]
        return [row for cursor in cursors if (row := await cursor.fetchone())]


def _settle(future: "asyncio.Future[dict[str, int]]", outcome: dict[str, int] | BaseException) -> None:
    if future.cancelled():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
