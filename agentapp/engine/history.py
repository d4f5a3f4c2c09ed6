"""The one builder of message lists that go to a provider, and the validator that proves their pairing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .errors import PairingError
from .messages import Message

INTERRUPTED = "Error: interrupted, there is no result"


def pairing_problems(messages: Sequence[Message]) -> list[str]:
    """Every place where tool calls and tool messages do not match: each assistant message with calls must be
    followed at once by exactly one tool message for each call, in the order of the calls."""
    problems: list[str] = []
    expected: list[str] = []
    for position, message in enumerate(messages):
        if message.role == "tool":
            if not expected:
                problems.append(f"message {position}: a tool message without a call")
            elif message.tool_call_id != expected[0]:
                problems.append(f"message {position}: answers {message.tool_call_id!r}, expected {expected[0]!r}")
            expected = expected[1:]
            continue
        if expected:
            problems.append(f"message {position}: calls {expected!r} have no result")
        expected = [call.id for call in message.tool_calls] if message.tool_calls else []
        if len(expected) > 1 and len(set(expected)) < len(expected):
            problems.append(f"message {position}: call ids are not unique")
    if expected:
        problems.append(f"end: calls {expected!r} have no result")
    return problems


def validate_pairing(messages: Sequence[Message]) -> None:
    """Raises `PairingError` for a list that a provider would refuse."""
    if problems := pairing_problems(messages):
        raise PairingError(problems)


def repair_history(messages: Iterable[Message]) -> list[Message]:
    """Earlier turns in a form that every provider takes. Clean messages come back as they are.

    A call without a result gets a synthetic one directly behind the real ones; a tool message without a call
    and an assistant message with neither text nor calls are left out.
    """
    repaired: list[Message] = []
    pending = list(messages)
    position = 0
    while position < len(pending):
        message = pending[position]
        position += 1
        if message.role == "tool" or (message.role == "assistant" and not message.tool_calls and not message.content):
            continue
        if not message.tool_calls:
            repaired.append(message)
            continue
        answers: dict[str, Message] = {}
        while position < len(pending) and pending[position].role == "tool":
            answer = pending[position]
            answers.setdefault(answer.tool_call_id or "", answer)
            position += 1
        repaired += _paired_turn(message, answers)
    return repaired


def _paired_turn(message: Message, answers: dict[str, Message]) -> list[Message]:
    calls = list({call.id: call for call in message.tool_calls}.values())
    turn = [message if len(calls) == len(message.tool_calls) else replace(message, tool_calls=calls)]
    return turn + [answers.get(call.id) or Message.tool(call.id, INTERRUPTED) for call in calls]


def first_messages(system: str, history: Iterable[Message], query: Message) -> list[Message]:
    """One system message, the repaired history without its own, then the current query."""
    earlier = repair_history(message for message in history if message.role != "system")
    return [Message.system(system), *earlier, query]


def merge_adjacent(messages: Iterable[Message]) -> list[Message]:
    """For providers that refuse two messages of one role in a row. Tool messages and calls are never merged."""
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        plain = message.role in ("user", "assistant") and not message.tool_calls
        if last is not None and plain and last.role == message.role and not last.tool_calls:
            merged[-1] = replace(last, content=_joined(last, message), pinned=last.pinned or message.pinned)
        else:
            merged.append(message)
    return merged


def _joined(first: Message, second: Message) -> str | list[dict[str, object]]:
    if isinstance(first.content, str) and isinstance(second.content, str):
        return f"{first.content}\n\n{second.content}"
    parts: list[dict[str, object]] = []
    for message in (first, second):
        parts += [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content
    return parts
