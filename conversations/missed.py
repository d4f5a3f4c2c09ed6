"""What a watcher that comes in has missed: durable events from PostgreSQL, the answer so far from the live log."""

from typing import Any
from uuid import UUID

import orjson

from agentapp.database import prepared_cursor
from conversations.events import channel_of, envelope
from conversations.hub import Entry
from conversations.models import Run

PAGE = 200  # events at a time

# Plain SQL: it is asked whenever somebody begins to watch a run, and with the ORM it was two questions.
_MISSED = """
SELECT run.status, event.seq, event.channel, event.data, event.at
FROM conversations_run run LEFT JOIN LATERAL (
    SELECT * FROM conversations_runevent WHERE run_id = run.id AND seq > %(after)s
        AND (seq <= %(upto)s::int OR %(upto)s::int IS NULL OR run.status NOT IN ('queued', 'running', 'waiting'))
    ORDER BY seq LIMIT %(page)s
) event ON true
WHERE run.id = %(run)s ORDER BY event.seq
"""


def missed(run: UUID, after: int, upto: int | None) -> tuple[str, list[Entry]]:
    """The next page of events; once the run has ended, whatever `upto` says."""
    with prepared_cursor() as cursor:
        cursor.execute(_MISSED, {"run": run, "after": after, "upto": upto, "page": PAGE})
        rows = cursor.fetchall()
    if not rows:
        return Run.Status.CANCELLED, []
    events = [(seq, channel, orjson.loads(data), at) for _, seq, channel, data, at in rows if seq is not None]
    return rows[0][0], [(seq, envelope(run, seq, channel, data, at)) for seq, channel, data, at in events]


def latest_seqs(runs: set[UUID]) -> dict[UUID, int]:
    return {run: next_seq - 1 for run, next_seq in Run.objects.filter(id__in=runs).values_list("id", "next_seq")}


def answer_so_far(entries: list[Entry]) -> tuple[str, int]:
    pieces: list[str] = []
    length = attempt = 0
    for _, body in entries:
        if channel_of(body) != b"answer":
            continue
        data: dict[str, Any] = orjson.loads(body)["data"]
        if data["status"] == "start" or (data["status"] == "delta" and data["attempt"] > attempt):
            pieces, length, attempt = [], 0, data["attempt"]  # a log that was lost begins in the middle of an answer
        if data["status"] == "delta" and data["attempt"] == attempt and data["offset"] <= length:
            if data["offset"] < length:  # sent again
                pieces = ["".join(pieces)[: data["offset"]]]
            pieces.append(data["content"])
            length = data["offset"] + len(data["content"])
    return "".join(pieces), attempt
