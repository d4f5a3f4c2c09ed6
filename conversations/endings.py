"""What a run leaves open when it ends: every started call and every started step gets an end."""

from typing import Any, NamedTuple
from uuid import UUID

from django.utils import timezone

from agentapp.database import prepared_cursor
from conversations.events import KeyedEvent
from conversations.models import Call, Run, RunEvent

STOPPED = "Stopped while it was going on; its effect may have happened."


class Open(NamedTuple):
    """What there is to close: of most runs nothing. `leaf` is the end of the conversation's branch, which only messages
    to the run move while it is going on."""

    calls: bool
    steps: bool
    approvals: bool
    questions: bool
    interrupts: bool
    leaf: UUID | None


def what_is_open(run: Run) -> Open:
    """One query instead of six."""
    with prepared_cursor() as cursor:
        cursor.execute(
            """
            SELECT EXISTS (SELECT 1 FROM conversations_call WHERE run_id = %(run)s AND state = 'started'),
                (SELECT 2 * count(*) FILTER (WHERE data->>'status' = 'start') > count(*)
                 FROM conversations_runevent
                 WHERE run_id = %(run)s AND channel = 'step' AND data->>'type' IN ('thinking', 'iteration')),
                EXISTS (SELECT 1 FROM conversations_approval WHERE run_id = %(run)s AND state = 'pending'),
                EXISTS (SELECT 1 FROM conversations_question WHERE run_id = %(run)s AND state = 'pending'),
                EXISTS (SELECT 1 FROM conversations_interrupt WHERE run_id = %(run)s AND state IN ('queued', 'read')),
                (SELECT leaf_id FROM conversations_conversation WHERE id = %(conversation)s)
            """,
            {"run": run.id, "conversation": run.conversation_id},
        )
        return Open(*cursor.fetchone())


def record_broken_off(run: Run, rows: list[dict[str, Any]]) -> None:
    """Calls of which only their worker knows that they began, and the cost of those whose start is on record."""
    Call.objects.bulk_create([Call(run=run, epoch=run.epoch, **row) for row in rows], ignore_conflicts=True)
    for row in rows:
        if row["cost"]:
            run.calls.filter(key=row["key"], state=Call.State.STARTED).update(cost=row["cost"])


def close_calls(run: Run) -> None:
    """Calls whose start is on record and whose end is not."""
    started = run.calls.filter(state=Call.State.STARTED)
    started.update(state=Call.State.CANCELLED, error=STOPPED, ended_at=timezone.now())


def open_steps(run: Run) -> list[KeyedEvent]:
    """The ends of steps that began, whichever worker began them, and will not end by themselves."""
    fields = ("type", "iteration", "call_id", "step_id")
    steps = RunEvent.objects.filter(run=run, channel="step", data__type__in=("thinking", "iteration"))
    begun: dict[tuple[Any, ...], str] = {}
    for key, status, *place in steps.order_by("seq").values_list(
        "key", "data__status", *(f"data__{field}" for field in fields)
    ):
        if status == "start":
            begun[tuple(place)] = key
        else:
            begun.pop(tuple(place), None)
    if not begun:
        return []
    rows = RunEvent.objects.filter(run=run, key__in=begun.values()).order_by("seq")
    return [KeyedEvent(f"{row.key}/stopped", row.channel, _stopped(row.data)) for row in rows]


def _stopped(data: dict[str, Any]) -> dict[str, Any]:
    told = {name: value for name, value in data.items() if name != "tool_args"} | {"status": "done"}
    if told["type"] == "thinking":
        return told | {"reasoning": ""}
    return told | {"observation": "", "error": "Stopped", "iter_elapsed": None, "artifacts": []}
