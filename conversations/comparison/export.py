"""A comparison as CSV (one row an attempt) and as JSON (figures, tasks and attempts)."""

import csv
import io
import json
from typing import Any

from agentapp.engine.comparison import figures_of
from conversations.models import Comparison

COLUMNS = (
    "task",
    "route",
    "repeat",
    "outcome",
    "fault",
    "recovery",
    "model_calls",
    "tool_calls",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost",
    "judge_tokens",
    "judge_cost",
    "seconds",
    "started_at",
    "ended_at",
    "why",
    "error",
    "answer",
)


def as_csv(comparison: Comparison) -> str:
    """Cells that a spreadsheet would take for a formula begin with an apostrophe."""
    file = io.StringIO(newline="")
    rows = csv.writer(file)
    rows.writerow(COLUMNS)
    for attempt in comparison.attempts.defer("trace"):
        rows.writerow([_cell(getattr(attempt, name)) for name in COLUMNS])
    return file.getvalue()


def as_json(comparison: Comparison) -> str:
    attempts = list(comparison.attempts.defer("trace"))
    data = {
        "comparison": {
            "id": str(comparison.id),
            "name": comparison.name,
            "digest": comparison.digest,
            "agent": str(comparison.agent or ""),
            "agent_version": comparison.agent_version.number if comparison.agent_version else None,
            "model": comparison.model_name,
            "routes": comparison.routes,
            "repeats": comparison.repeats,
            "faults": comparison.faults,
            "limits": comparison.limits,
            "status": comparison.status,
            "reason": comparison.reason,
            "created_at": comparison.created_at.isoformat(),
            "ended_at": comparison.ended_at.isoformat() if comparison.ended_at else None,
        },
        "figures": [figures.to_dict() for figures in figures_of(attempts)],
        "tasks": comparison.tasks,
        "attempts": [{name: _plain(getattr(attempt, name)) for name in COLUMNS} for attempt in attempts],
    }
    return json.dumps(data, indent=1, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else value.isoformat()


def _cell(value: Any) -> Any:
    plain = "" if value is None else _plain(value)
    return f"'{plain}" if isinstance(plain, str) and plain.startswith(("=", "+", "-", "@", "\t", "\r")) else plain
