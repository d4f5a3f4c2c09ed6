"""The transitions of a run: start, end, put back. Inside the caller's transaction, on a locked row; what others must
hear of it happens after commit, and its failure is harmless: the sweeper and the next page load make up for it."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import redis
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from agentapp.celery import hint
from agentapp.database import prepared_cursor
from agentapp.engine import EffectClass, Event
from agentapp.plain_rows import Columns
from conversations import allotments, claims, live
from conversations.crash_points import reach
from conversations.endings import close_calls, open_steps, what_is_open
from conversations.events import KeyedEvent
from conversations.models import RELAY, Approval, Asked, Call, Interrupt, Message, Question, Run, RunEvent
from conversations.telling import tell_message, tell_run
from conversations.webhooks import outbox
from tools_admin.models import Agent
from tools_admin.services import agent_for

log = logging.getLogger(__name__)

_RUN, _MESSAGE, _EVENT = Columns(Run), Columns(Message), Columns(RunEvent)
_HELD = f"""
SELECT {_RUN.of("run")} FROM conversations_run run WHERE id = %s AND epoch = %s AND status = 'running' FOR UPDATE
"""  # noqa: S608 - names of columns

_MOVED = "UPDATE conversations_conversation SET updated_at = statement_timestamp(), leaf_id = %s WHERE id = %s"


def start_run(
    message: Message,
    user: User,
    *,
    mode: str = "",
    agent: Agent | None = None,
    copy_from: Run | None = None,
    asked: Asked | None = None,
    api_key_id: int | None = None,
) -> Run:
    """A queued run that answers `message` of this person; enqueued after commit. The conversation's agent answers, or
    another one if that is not theirs to use any more: give an `agent` that was found to be theirs just now.
    `copy_from`: begin with its finished records. `asked`: answer once more what a program asked another run."""
    mode = RELAY if asked and asked.route else mode
    conversation = message.conversation
    agent = None if mode == RELAY else agent or agent_for(user, conversation.agent_id)
    run = Run(
        conversation=conversation,
        user=user,
        api_key_id=api_key_id,
        agent=agent,
        message=message,
        mode=mode or (agent.mode if agent else "react"),
        deadline=timezone.now() + timedelta(days=settings.RUN_DEADLINE_DAYS),
        enqueued_at=timezone.now(),
    )
    _RUN.insert([run])
    if copy_from:
        _copy_finished(copy_from, run)
        asked = Asked.objects.filter(run=copy_from).first()
    if asked:
        asked.pk, asked.run, asked.awaited_until = None, run, None
        asked.save()
    after_commit(reach, "K1")
    after_commit(enqueue, run.id)
    after_commit(tell_run, run)
    return run


def end_run(
    run: Run,
    status: Run.Status,
    reason: str,
    *,
    answer: str = "",
    error: str = "",
    **figures: Any,
) -> None:
    """The terminal transition, inside the caller's transaction, on a locked row: answer, `done`, leftovers.

    Whatever began gets its end; `done` comes last, exactly once. It is an epoch of its own: a worker that does not
    know yet can say nothing after it.
    """
    run.status, run.reason, run.error, run.answer = status, reason, error[:500], answer
    allotments.close(run)
    run.epoch += 1
    run.ended_at, run.lease_owner, run.lease_expires_at = timezone.now(), "", None
    for name, value in figures.items():
        setattr(run, name, value)
    open_now = what_is_open(run)
    left = _unseen(run) if open_now.interrupts else []
    tip = left[0].parent_id if left else open_now.leaf
    message = _answer(run, tip) if answer else None
    if open_now.calls:
        close_calls(run)
    closing = open_steps(run) if open_now.steps else []
    if status == Run.Status.FAILED:
        data = {
            "code": reason,
            "message": error,
            "retryable": reason in ("model_unavailable", "crash_loop", "internal"),
        }
        closing.append(KeyedEvent("end/error", "error", data))
    if open_now.approvals:
        run.approvals.filter(state=Approval.State.PENDING).update(state=Approval.State.SUPERSEDED)
    if open_now.questions:
        run.questions.pending().update(state=Question.State.SUPERSEDED)
    add_events(run, [*closing, KeyedEvent.of("end/done", Event("done", _done(run, message)))], ended=True)
    _RUN.save(run)
    outbox.tell_end(run)
    leaf = _hand_over(run, left, message.id if message else tip)
    with prepared_cursor() as cursor:
        cursor.execute(_MOVED, [leaf, run.conversation_id])
    after_commit(tell_run, run)
    after_commit(enqueue_next, run.user_id)


def held(run_id: UUID, epoch: int) -> Run | None:
    """The locked row, if the run still belongs to this epoch."""
    with prepared_cursor() as cursor:
        cursor.execute(_HELD, [run_id, epoch])
        found = cursor.fetchone()
    return _RUN.row(iter(found)) if found else None


def put_back(run: Run, *, reason: str = "", delay: float = 0.0) -> None:
    """Back into the queue: this worker stops, or (`reason`, `delay` in seconds) the run waits for its model."""
    if _was_stopped(run):
        return
    run.status, run.reason, run.lease_owner, run.lease_expires_at = Run.Status.QUEUED, reason, "", None
    allotments.close(run)
    run.crashes, run.enqueued_at = 0, timezone.now()
    if reason:
        run.retry_at = run.enqueued_at + timedelta(seconds=delay)
        run.postponed += 1
        data = {"status": "queued", "reason": reason, "attempt": run.attempt, "mode": run.mode, "model": run.model}
        add_events(run, [KeyedEvent(f"run/queued/{run.epoch}", "run", data)])
    run.save()
    after_commit(tell_run, run)
    after_commit(enqueue_next, run.user_id)
    if not reason:
        after_commit(enqueue, run.id)


def suspend(run: Run, reason: str, request: dict[str, Any]) -> None:
    """The run waits for a person and holds nothing. A decision that came in meanwhile sends it back at once."""
    if _was_stopped(run):
        return
    if reason == "approval" and not run.approvals.filter(state=Approval.State.PENDING).exists():
        put_back(run)
        return
    if reason == "input" and not run.questions.pending().exists():
        put_back(run)
        return
    run.status, run.reason, run.lease_owner, run.lease_expires_at = Run.Status.WAITING, reason, "", None
    allotments.close(run)
    data = {"status": "waiting", "reason": reason, "request": request, "attempt": run.attempt}
    data |= {"mode": run.mode, "model": run.model}
    add_events(run, [KeyedEvent(f"run/waiting/{run.epoch}", "run", data)])
    run.save()
    if reason == "approval":
        outbox.tell_waiting(run)
    after_commit(tell_run, run)
    after_commit(enqueue_next, run.user_id)


def add_events(run: Run, events: list[KeyedEvent], *, ended: bool = False) -> None:
    """Writes durable events in the caller's transaction, on a locked run; appends them to the live log on commit.

    With `ended` they are the run's last: nobody has written them before, and the caller saves the run.
    """
    at = timezone.now()
    if not ended:
        known = set(RunEvent.objects.filter(run=run, key__in=[e.key for e in events]).values_list("key", flat=True))
        events = [event for event in events if event.key not in known]
    rows = [
        RunEvent(run=run, seq=run.next_seq + n, channel=e.channel, data=e.data, key=e.key, at=at)
        for n, e in enumerate(events)
    ]
    _EVENT.insert(rows)
    run.next_seq += len(rows)
    if not ended:
        Run.objects.filter(id=run.id).update(next_seq=run.next_seq)
    entries = [(row.seq, row.channel, row.data, row.at) for row in rows]
    after_commit(lambda: live.append_events(run.id, run.epoch, entries, ended=ended))


def enqueue(run_id: UUID) -> None:
    """Puts the hint into the broker. With the broker away the run stays queued; the sweeper enqueues it again."""
    hint("conversations.tasks.execute_run", str(run_id))


def enqueue_next(user_id: int) -> None:
    """A run has left its place: the user's next ones may begin. If this is lost the sweeper finds them."""
    for run_id in claims.next_runs(user_id):
        enqueue(run_id)


def wake(run_id: UUID) -> None:
    """Tells the worker of a run to look at its cancel flag now; it would see it with the next heartbeat anyway."""
    try:
        live.sync_client().publish("wake", str(run_id))
    except (redis.RedisError, OSError) as error:
        log.warning("The live channel does not answer (%s). Run %s stops with the next heartbeat.", error, run_id)


def _answer(run: Run, parent: UUID | None) -> Message:
    message = Message(
        conversation_id=run.conversation_id,
        parent_id=parent,
        run=run,
        role=Message.Role.ASSISTANT,
        content=run.answer,
        partial=run.status != Run.Status.COMPLETED,
    )
    _MESSAGE.insert([message])
    return message


def _done(run: Run, message: Message | None) -> dict[str, Any]:
    """The `done` event of `protocol.md`."""
    ended_at = run.ended_at or timezone.now()
    return {
        "status": str(run.status),
        "reason": run.reason,
        "answer": run.answer,
        "iterations": run.iterations,
        "usage": run.usage,
        "cost": run.cost,
        "elapsed": round((ended_at - (run.started_at or run.created_at)).total_seconds(), 3),
        "message_id": str(message.id) if message else None,
    }


def _was_stopped(run: Run) -> bool:
    """Ends a run that somebody stopped while its worker let go of it."""
    if run.cancel_requested_at is not None:
        end_run(run, Run.Status.CANCELLED, "user")
    return run.cancel_requested_at is not None


def _copy_finished(source: Run, target: Run) -> None:
    """The finished records of `source`, except its answer: a new run answers anew with what was found.

    Calls that must not be repeated come along in any state: if it is not known what became of one, a person is asked.
    """
    kept = Q(state=Call.State.SUCCEEDED) | Q(effect_class=EffectClass.ONCE)
    finished = source.calls.filter(kept).exclude(key__startswith="answer/").order_by("id")
    copies = []
    for call in finished:
        call.pk, call.run, call.epoch = None, target, 0
        call.cost, call.usage = 0, {}  # paid for by the run that made it
        copies.append(call)
    Call.objects.bulk_create(copies)


def _unseen(run: Run) -> list[Message]:
    """What was sent to the run and no model has read, oldest first: the end of the branch."""
    interrupts = run.interrupts.select_for_update(of=("self",)).filter(state__in=Interrupt.UNSEEN)
    return [interrupt.message for interrupt in interrupts.select_related("message").order_by("id")]


def _hand_over(run: Run, left: list[Message], tip: UUID | None) -> UUID | None:
    """What nobody saw becomes the next turn; after a user's stop it goes back to its writer. Gives the branch's end."""
    if not left or run.reason == "conversation_deleted":
        return tip
    stopped, at = run.status == Run.Status.CANCELLED, timezone.now()
    state = Interrupt.State.RETURNED if stopped else Interrupt.State.HANDED_OVER
    run.interrupts.filter(message__in=left).update(state=state)
    for number, message in enumerate(left):
        if stopped:
            message.recalled = True
        else:  # it was sent before the answer was written, and now it follows it
            message.created_at = at + timedelta(microseconds=number)
            message.parent_id, message.injected = tip, False
            tip = message.id
        message.save(update_fields=["recalled", "created_at", "parent", "injected"])
        after_commit(tell_message, run.user_id, message)
    if not stopped:
        start_run(left[-1], run.user, api_key_id=run.api_key_id)
    return tip


def after_commit(call: Callable[..., None], *arguments: Any) -> None:
    transaction.on_commit(lambda: call(*arguments))
