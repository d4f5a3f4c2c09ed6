"""A call that must not be repeated was started and its end was not seen: a person says what became of it."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from conversations.cleaning import clean
from conversations.errors import NotFound, NothingToResolve
from conversations.events import KeyedEvent, bounded
from conversations.lifecycle import add_events, put_back
from conversations.models import Approval, Call, Run, RunEvent, Settlement

OUTCOMES = tuple(Settlement.Outcome.values)


def resolve(user: User, run_id: UUID, key: str, outcome: str, result: str = "") -> Run:
    """`done` (with what it gave), `not_done`, or `retry` (do it now); the run goes on. Who said so is on record.

    Raises NotFound, NothingToResolve.
    """
    with transaction.atomic(durable=True):
        run = Run.objects.settleable_by(user).select_for_update(of=("self",)).filter(id=run_id).first()
        if run is None:
            raise NotFound("run")
        call = run.calls.filter(key=key, state=Call.State.UNKNOWN).first()
        if run.status != Run.Status.WAITING or call is None:
            raise NothingToResolve
        said = clean(result)
        name = call.request.get("name", "")
        Settlement.objects.create(run=run, key=key, tool_name=name, outcome=outcome, result=said, user=user)
        if outcome == "retry":
            Approval.objects.filter(run=run, key=key, state=Approval.State.CONSUMED).update(
                state=Approval.State.APPROVED
            )
            call.delete()
        else:
            _settle(run, call, outcome == "done", said)
        put_back(run)
    return run


def unknown_call(run: Run, key: str) -> dict[str, Any]:
    """Marks the call and gives what the person is asked about."""
    call = run.calls.get(key=key)
    call.state = Call.State.UNKNOWN
    call.save(update_fields=["state"])
    return {"call": key, "tool_name": call.request.get("name", ""), "tool_args": call.request.get("arguments", {})}


def _settle(run: Run, call: Call, done: bool, said: str) -> None:
    text = said or ("It was done, as a person confirms." if done else "It was not done, as a person confirms.")
    call.state = Call.State.SUCCEEDED
    call.result = {
        "content": text,
        "is_error": not done,
        "content_type": "text/plain",
        "artifacts": [],
        "elapsed": 0.0,
    }
    call.error, call.ended_at = "" if done else text, timezone.now()
    call.save()
    started = RunEvent.objects.filter(run=run, key=f"{call.key}#0").first()
    if started:
        data = {name: value for name, value in started.data.items() if name != "tool_args"}
        data |= {"status": "done", "observation": text if done else "", "error": None if done else text}
        data |= {"iter_elapsed": None, "artifacts": []}
        add_events(run, [KeyedEvent(f"{call.key}#1", started.channel, bounded(data))])
