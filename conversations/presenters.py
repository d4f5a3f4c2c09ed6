"""Rows as the pages show them: the list, the turns of a conversation, the calls of a run."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from accounts.money import shown_money
from conversations.approvals import approval_data
from conversations.models import Approval, Call, Conversation, Message, Question, Run, RunEvent
from conversations.questions import question_data
from conversations.tree import Siblings, place
from tools_admin.modes import Mode

HISTORY_VALUE_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Group:
    """A headed part of the conversation list."""

    key: str
    title: str
    conversations: list[Conversation]


@dataclass(slots=True)
class Turn:
    """A message of the user, or a run with its answer: one entry of the thread, perhaps one of several alternatives."""

    message: Message | None = None
    run: Run | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    siblings: Siblings | None = None

    @property
    def summary(self) -> str:
        return work_summary(self.run) if self.run else ""

    @property
    def facts(self) -> list[str]:
        return run_facts(self.run) if self.run else []


def group_conversations(conversations: Iterable[Conversation], today: date) -> list[Group]:
    """Pinned, today, yesterday, older; all four are there, so that a page can move entries between them."""
    groups = {
        "pinned": Group("pinned", _("Pinned"), []),
        "today": Group("today", _("Today"), []),
        "yesterday": Group("yesterday", _("Yesterday"), []),
        "older": Group("older", _("Older"), []),
    }
    for conversation in conversations:
        day = timezone.localdate(conversation.updated_at)
        if conversation.pinned:
            key = "pinned"
        elif day >= today:
            key = "today"
        else:
            key = "yesterday" if day == today - timedelta(days=1) else "older"
        groups[key].conversations.append(conversation)
    return list(groups.values())


def attempts(messages: Iterable[Message], runs: Iterable[Run], answered: set[UUID]) -> dict[UUID, Run | None]:
    """By message that began a run, the run that stands in the place of its answer: the latest one, and none if that is
    one of the `answered` or an answer follows."""
    latest = {run.message_id: run for run in sorted(runs, key=lambda run: run.created_at)}
    followed = {message.parent_id for message in messages if message.role == Message.Role.ASSISTANT}
    return {m: None if run.id in answered or m in followed else run for m, run in latest.items()}


def build_turns(
    messages: list[Message],
    began: dict[UUID, Run | None],
    events: Iterable[RunEvent],
    children: dict[UUID | None, list[UUID]],
) -> list[Turn]:
    """The thread, oldest first, of a branch's messages. A run stands where its answer does; one without an answer
    after all messages it read.

    `began` tells which messages began a run, and of those without an answer which one (`attempts`); `children` are the
    alternatives (`tree.siblings`).
    """
    by_run: dict[UUID, list[dict[str, Any]]] = {}
    for event in events:
        by_run.setdefault(event.run_id, []).append(present_event(event))

    def turn(message: Message | None, run: Run | None, parent: UUID | None) -> Turn:
        siblings = place(children.get(parent, []), message.id if message else None)
        return Turn(message, run, by_run.get(run.id, []) if run else [], siblings)

    turns: list[Turn] = []
    waiting: Run | None = None
    for message in messages:
        if message.role == Message.Role.ASSISTANT:
            turns.append(turn(message, message.run, message.parent_id))
            continue
        if waiting and message.id in began:
            turns.append(Turn(None, waiting, by_run.get(waiting.id, [])))
            waiting = None
        turns.append(turn(message, None, message.parent_id))
        waiting = began.get(message.id, waiting)
    if waiting:
        turns.append(turn(None, waiting, messages[-1].id))
    return turns


def present_event(event: RunEvent) -> dict[str, Any]:
    """An envelope without its run; long values are cut, the run's own page has them whole."""
    data = {key: _shortened(value) for key, value in event.data.items() if key != "answer"}
    return {"seq": event.seq, "channel": event.channel, "data": data, "at": event.at.isoformat(timespec="milliseconds")}


def present_approval(approval: Approval, reader: User) -> dict[str, Any]:
    """A call that waits for a word: as its event tells of it, with where it comes from, and whose it is if not ours."""
    owner = "" if approval.run.user_id == reader.pk else str(approval.run.user)
    shown = {**approval_data(approval), "expires": approval.expires_at, "owner": owner, **_origin(approval.run)}
    return {**shown, "approvers": ""} if owner else shown


def present_doubt(call: Call) -> dict[str, Any]:
    """A call of which nobody saw the end, as the run's `request` names it, with where it comes from."""
    asked = {"tool_name": call.request.get("name", ""), "tool_args": call.request.get("arguments", {})}
    return {"call": call.key, **asked, **_origin(call.run)}


def present_question(question: Question) -> dict[str, Any]:
    """A question that waits for its person's answer, with where it comes from."""
    return {**question_data(question), **_origin(question.run)}


def _origin(run: Run) -> dict[str, Any]:
    return {"run": str(run.id), "conversation": str(run.conversation_id), "question": run.message.content}


def _shortened(value: Any) -> Any:
    if isinstance(value, str) and len(value) > HISTORY_VALUE_CHARS:
        return value[:HISTORY_VALUE_CHARS] + "…"
    return value


def elapsed_seconds(run: Run, now: datetime | None = None) -> float:
    began = run.started_at or run.created_at
    return max(0.0, round(((run.ended_at or now or timezone.now()) - began).total_seconds(), 3))


def model_label(run: Run) -> str:
    return str(run.model.get("label") or run.model.get("name") or "")


def mode_label(run: Run) -> str:
    """The way in which it was worked on, where that was not the usual one."""
    mode = run.route.get("mode") or run.mode
    return "" if run.mode == Mode.REACT or mode not in Mode.values else str(Mode(mode).label)


def tokens(usage: dict[str, Any]) -> int:
    return int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)


def grouped(count: int) -> str:
    """`1,240`, with the language's separators."""
    return number_format(count, force_grouping=True)


def duration(seconds: float) -> str:
    """`12 ms`, `4.2 s`, `75 s`, `12 min`."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        digits = 1 if seconds < 60 else 0  # rounded here as in the browser: `number_format` cuts off
        return f"{number_format(Decimal(seconds).quantize(Decimal(10) ** -digits, ROUND_HALF_UP), digits)} s"
    return f"{seconds / 60:.0f} min"


def work_summary(run: Run) -> str:
    """`Worked 4.2 s · 3 steps`."""
    steps = ngettext("%(count)d step", "%(count)d steps", run.iterations) % {"count": run.iterations}
    return _("Worked %(time)s") % {"time": duration(elapsed_seconds(run))} + f" · {steps}"


def run_facts(run: Run) -> list[str]:
    """What an answer's last line says: model, steps, time, tokens, cost."""
    facts = [model_label(run), mode_label(run)]
    if run.iterations:
        facts.append(ngettext("%(count)d step", "%(count)d steps", run.iterations) % {"count": run.iterations})
    if run.ended_at:
        facts.append(duration(elapsed_seconds(run)))
    if count := tokens(run.usage):
        facts.append(ngettext("%(count)s token", "%(count)s tokens", count) % {"count": grouped(count)})
    if run.cost:
        facts.append(shown_money(run.cost))
    return [fact for fact in facts if fact]


def page_state(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """What the page's scripts go on from: each run with its events, to be followed by what comes live."""
    return [
        {
            "id": str(turn.run.id),
            "status": turn.run.status,
            "reason": turn.run.reason,
            "error": turn.run.error,
            "seq": turn.events[-1]["seq"] if turn.events else 0,
            "started": (turn.run.started_at or turn.run.created_at).isoformat(),
            "elapsed": elapsed_seconds(turn.run) if turn.run.ended_at else None,
            "iterations": turn.run.iterations,
            "tokens": tokens(turn.run.usage),
            "mode": turn.run.mode,
            "route": turn.run.route or None,
            "cost": turn.run.cost,
            "model": model_label(turn.run),
            "why": str(turn.run.model.get("reason") or ""),
            "events": turn.events,
        }
        for turn in turns
        if turn.run
    ]
