"""The record of a run, call by call, as its page shows it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.models import Call, Run
from conversations.presenters import duration, elapsed_seconds, tokens

WATERFALL_WIDTH = 1_000  # units of the drawing, stretched to the column
SHORTEST_BAR = 6


@dataclass(frozen=True, slots=True)
class CallRow:
    """One call with its place in the run's time."""

    call: Call
    title: str
    request: str
    result: str
    time: str
    tokens: int
    bar_start: float
    bar_width: float
    bar_class: str


def present_calls(run: Run, calls: Iterable[Call]) -> list[CallRow]:
    now = timezone.now()
    began = run.started_at or run.created_at
    total = max(elapsed_seconds(run, now), 0.001)
    return [_row(call, (call.started_at - began).total_seconds(), _seconds(call, now), total) for call in calls]


def _row(call: Call, start: float, seconds: float, total: float) -> CallRow:
    scale = WATERFALL_WIDTH / total
    width = max(SHORTEST_BAR, min(seconds * scale, WATERFALL_WIDTH))
    return CallRow(
        call=call,
        title=_title(call),
        request=pretty(call.request),
        result=pretty(call.result) if call.result is not None else "",
        time=duration(seconds) if call.ended_at else "–",
        tokens=tokens(call.usage),
        bar_start=round(max(0.0, min(start * scale, WATERFALL_WIDTH - width)), 1),
        bar_width=round(width, 1),
        bar_class="bar-failed" if call.state == Call.State.FAILED else "bar-tool" if call.kind == "tool" else "bar",
    )


def _seconds(call: Call, now: Any) -> float:
    return max(0.0, ((call.ended_at or now) - call.started_at).total_seconds())


def _title(call: Call) -> str:
    """The tool's name, or what the model was asked for."""
    if call.kind == "tool":
        return str(call.request.get("name") or _("Tool"))
    if call.key.startswith("lost/"):
        return _("Broken off")
    if call.kind == "llm":
        return _("Answer") if call.key.startswith("answer/") else _("Model")
    return call.kind.replace("_", " ").capitalize()


def pretty(value: Any) -> str:
    """JSON for reading; text stays text."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
