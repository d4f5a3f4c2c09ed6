"""One attempt: a task through one route, what it used, and what its end is worth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..agent import Agent
from ..errors import IncompleteStream, ModelUnavailable
from ..journal import CallKind, MemoryJournal
from ..messages import Usage
from ..models import ChatModel
from ..patience import LeftAlone
from ..results import AgentResult
from .faults import FaultyTools
from .grading import Grade, admits, grade
from .tasks import Task

TRACE_CHARS = 2_000
# The price of one recorded call, in micro-units.
PriceOf = Callable[[Mapping[str, Any]], int]


@dataclass(frozen=True, slots=True)
class Attempt:
    """`outcome` is completed, accepted (an answer that is wrong, or that nothing supports), declined (an answer that
    says what is missing) or failed. `recovery` after a fault is recovered, kept_searching or gave_up."""

    outcome: str
    answer: str
    recovery: str = ""
    why: str = ""
    error: str = ""
    usage: Usage = field(default_factory=Usage)
    tool_calls: int = 0
    cost: int = 0
    seconds: float = 0.0
    trace: list[dict[str, Any]] = field(default_factory=list)
    judge_usage: Usage = field(default_factory=Usage)
    unavailable: bool = False  # the model could not be reached


async def attempt(
    agent: Agent,
    task: Task,
    faulty: FaultyTools,
    journal: MemoryJournal,
    *,
    judge: ChatModel | None = None,
    price: PriceOf = lambda record: 0,
) -> Attempt:
    """Runs `agent`, which works over `journal` and with the tools of `faulty`, to its end. Whatever it raises is a
    failed attempt, which has used what is on record."""
    begun = time.perf_counter()
    answer, error, reason, unavailable = "", "", "", False
    try:
        result = await agent.run(task.question)
        answer, error, reason = await _delivered(agent, task, result), result.error or "", result.stop_reason
    except Exception as problem:  # noqa: BLE001 (an attempt that breaks is one that failed)
        error = reason = f"{type(problem).__name__}: {problem}"[:500]
        unavailable = isinstance(problem, (ModelUnavailable, IncompleteStream, LeftAlone))
    seconds = time.perf_counter() - begun
    graded = await grade(task, answer, judge) if answer else Grade(False, "no answer")
    outcome = outcome_of(task, answer, graded, faulty, ended=reason == "final_answer")
    used = used_of(journal, price)
    return Attempt(
        outcome,
        answer,
        recovery_of(outcome, journal, faulty),
        "" if outcome == "completed" else graded.why or reason,
        error or ("" if reason == "final_answer" else reason),
        used.usage,
        used.tool_calls,
        used.cost,
        seconds,
        list(trace_of(journal)),
        graded.usage,
        unavailable,
    )


@dataclass(slots=True)
class Used:
    usage: Usage = field(default_factory=Usage)
    tool_calls: int = 0
    cost: int = 0


def used_of(journal: MemoryJournal, price: PriceOf = lambda record: 0) -> Used:
    """What the calls on record took, those of helpers, selection and planning too."""
    used = Used()
    for record in list(journal.records.values()):
        if "result" not in record:
            continue
        if record["kind"] == CallKind.LLM:
            used.usage += Usage(**record["result"].get("usage") or {"calls": 1})
        elif record["kind"] == CallKind.TOOL and not record["result"].get("not_run"):
            used.tool_calls += 1
        used.cost += price(record)
    return used


def outcome_of(task: Task, answer: str, graded: Grade, faulty: FaultyTools, *, ended: bool) -> str:
    """An answer that rests on a result that was made to fail, and on nothing since, is supported by nothing. Where the
    evidence can never arrive, to say so is all that can be asked."""
    honest = admits(answer)
    if faulty.injected and not faulty.overcome:
        hopeless = task.fault is not None and task.fault.times is None
        if honest and answer:
            return "completed" if hopeless and ended else "declined"
        return "accepted" if ended and answer.strip() else "failed"
    if graded.right:
        return "completed"
    if not ended:
        return "failed"
    return "declined" if honest else "accepted"


def recovery_of(outcome: str, journal: MemoryJournal, faulty: FaultyTools) -> str:
    """What the loop made of a bad first result: it got over it, it looked on in vain, or it left it at that."""
    if not faulty.injected:
        return ""
    if outcome == "completed" and faulty.overcome:
        return "recovered"
    keys = list(journal.records)
    after = keys[keys.index(faulty.first_key) + 1 :] if faulty.first_key in keys else []
    asked = False
    for key in after:
        kind = journal.records[key]["kind"]
        if asked and kind == CallKind.TOOL and not faulty.first_key.startswith(f"{key}/"):  # not what it is a part of
            return "kept_searching"
        asked = asked or kind == CallKind.LLM
    return "gave_up"


def trace_of(journal: MemoryJournal) -> Iterator[dict[str, Any]]:
    """The calls in the order in which they ended: who was called, with what, and what came back, cut."""
    for key, record in journal.records.items():
        result = record.get("result") or {}
        if record["kind"] == CallKind.TOOL:
            request = record["request"]
            shown = {"name": request["name"], "arguments": request["arguments"], "is_error": result.get("is_error")}
            yield {"key": key, **shown, "result": str(result.get("content", ""))[:TRACE_CHARS]}
        elif record["kind"] == CallKind.LLM:
            message = result.get("message") or {}
            calls = [{"name": c["name"], "arguments": c["arguments"]} for c in message.get("tool_calls", ())]
            told = {"role": record["request"].get("role", ""), "text": str(message.get("content", ""))[:TRACE_CHARS]}
            yield {"key": key, "name": result.get("model", ""), **told, **({"calls": calls} if calls else {})}


async def _delivered(agent: Agent, task: Task, result: AgentResult) -> str:
    """The answer as people get it, with the call that words it."""
    pieces = [piece async for piece in agent.stream_answer(task.question, result)]
    return result.delivered if result.delivered is not None else "".join(pieces)
