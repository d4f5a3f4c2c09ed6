"""What the engine tells about a run while it happens."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

MAX_VALUE_CHARS = 8_000


@dataclass(frozen=True, slots=True)
class Event:
    """`channel` and `data` as clients receive them."""

    channel: str
    data: dict[str, Any]


Emit = Callable[[Event], Awaitable[None] | None]


async def send(emit: Emit | None, event: Event) -> None:
    if emit is not None:
        pending = emit(event)
        if pending is not None and inspect.isawaitable(pending):
            await pending


def thinking_start(iteration: int) -> Event:
    return Event("step", {"type": "thinking", "status": "start", "iteration": iteration})


def thinking_done(iteration: int, reasoning: str) -> Event:
    data: dict[str, Any] = {"type": "thinking", "status": "done", "iteration": iteration, "reasoning": reasoning}
    return Event("step", _cut(data, "reasoning"))


def tool_start(iteration: int, call_id: str, tool_name: str, tool_args: dict[str, Any]) -> Event:
    data: dict[str, Any] = {
        "type": "iteration",
        "status": "start",
        "iteration": iteration,
        "call_id": call_id,
        "tool_name": tool_name,
        "tool_args": tool_args,
    }
    return Event("step", _cut(data, "tool_args"))


def tool_done(iteration: int, call_id: str, tool_name: str, result: dict[str, Any]) -> Event:
    failed = result["is_error"]
    data: dict[str, Any] = {
        "type": "iteration",
        "status": "done",
        "iteration": iteration,
        "call_id": call_id,
        "tool_name": tool_name,
        "observation": "" if failed else result["content"],
        "error": result["content"] if failed else None,
        "iter_elapsed": result["elapsed"],
        "content_type": result["content_type"],
        "artifacts": [
            {name: a[name] for name in ("id", "filename", "content_type", "size") if name in a}
            for a in result["artifacts"]
        ],
    }
    return Event("step", _cut(_cut(data, "observation"), "error"))


def answer_signal() -> Event:
    return Event("step", {"type": "answer", "status": "start"})


def answer_start(attempt: int) -> Event:
    return Event("answer", {"status": "start", "attempt": attempt})


def answer_delta(content: str, offset: int, attempt: int) -> Event:
    return Event("answer", {"status": "delta", "content": content, "offset": offset, "attempt": attempt})


def answer_done(attempt: int) -> Event:
    return Event("answer", {"status": "done", "attempt": attempt})


def inject(content: str, message_id: str) -> Event:
    return Event("inject", {"type": "inject", "content": content, "message_id": message_id})


def phase(name: str, **details: Any) -> Event:
    return Event("phase", {"phase": name, **details})


def plan_made(version: int, kind: str, steps: Iterable[dict[str, Any]]) -> Event:
    """A plan, or a new version of it. Arguments are in the trace."""
    told = [{**{k: v for k, v in step.items() if k != "tool_args"}, "status": "pending"} for step in steps]
    return Event("plan", {"version": version, "kind": kind, "steps": told})


def plan_step(version: int, step_id: str, status: str, **details: Any) -> Event:
    """`status` is running, done, failed or skipped."""
    data = {"version": version, "step_id": step_id, "status": status, **details}
    return Event("plan", _cut(data, "result") if "result" in data else data)


def compact(original_messages: int, kept_messages: int) -> Event:
    return Event("compact", {"original_messages": original_messages, "kept_messages": kept_messages})


def _cut(data: dict[str, Any], key: str) -> dict[str, Any]:
    """Shortens a long value; the full one is in the trace."""
    value = data[key]
    if value is None:
        return data
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > MAX_VALUE_CHARS:
        data[key] = text[:MAX_VALUE_CHARS]
        data["truncated"] = True
    return data
