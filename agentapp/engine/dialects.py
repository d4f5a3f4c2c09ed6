"""How a model asks for tools: in JSON that it writes as text, or by the provider's function calling.

The loop is the same for both; a dialect knows what to send along, what a reply means, and how results go back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from .json_text import extract_json
from .leaked_calls import read_leaked_calls, take_out_calls
from .messages import Completion, Message, ToolCall
from .prompts import CUT_CALL
from .registry import ToolRegistry
from .spoken_calls import json_at, read_react_text
from .tools import is_finite

Options = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a reply means. `message` is how it goes into the history; `refusal` is why none of its calls may run."""

    kind: Literal["tools", "final", "unparseable", "empty"]
    message: Message
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A reply, what it means, and whether it ends the run. `check` asks for a last look at it instead; `limit` is the
    one that made it the last."""

    completion: Completion
    turn: Turn
    accepted: bool
    check: bool
    limit: str | None


class Dialect(Protocol):
    json_contract: bool

    def offer(self, registry: ToolRegistry) -> None:
        """From now on these are the tools."""
        ...

    def options(self, tool_turns: int) -> Options:
        """Keyword arguments of the next model call."""
        ...

    def read(self, completion: Completion, iteration: int) -> Turn: ...

    def speaks(self, tool_turns: int) -> bool:
        """Whether text of the next reply is the answer itself, so that it may go out while it comes in."""
        ...

    def results(self, calls: Sequence[ToolCall], observations: Sequence[str]) -> list[Message]:
        """The messages that carry the results back, directly behind the assistant message."""
        ...


class NativeDialect:
    """Function calling: several calls a reply, each answered by a tool message."""

    json_contract = False

    def __init__(self, registry: ToolRegistry, max_output_tokens: int) -> None:
        self._max_output_tokens = max_output_tokens
        self._used_ids: set[str] = set()
        self.offer(registry)

    def offer(self, registry: ToolRegistry) -> None:
        self._options: Options = {}
        if len(registry):
            # One tuple until the next offer, so that an adapter encodes it once.
            self._options = {"tools": tuple(tool.definition for tool in registry), "tool_choice": "auto"}

    def options(self, tool_turns: int) -> Options:
        return self._options

    def speaks(self, tool_turns: int) -> bool:
        return not tool_turns

    def read(self, completion: Completion, iteration: int) -> Turn:
        message = completion.message
        if not message.tool_calls:
            said, leaked = take_out_calls(message.text, self._options.get("tools", ()))
            if leaked or said != message.text:
                message = replace(message, content=said, tool_calls=leaked)
        text, reasoning = message.text.strip(), message.reasoning
        if not message.tool_calls:
            return Turn("final" if text else "empty", message, message.text, reasoning)
        used = set(self._used_ids)
        calls = tuple(
            _with_unique_id(_without_nan(call), f"call_{iteration}_{slot}", used)
            for slot, call in enumerate(message.tool_calls)
        )
        return Turn(
            "tools",
            replace(message, tool_calls=calls),
            reasoning=reasoning or text,
            calls=calls,
            refusal=CUT_CALL if self._was_cut(completion) else None,
        )

    def _was_cut(self, completion: Completion) -> bool:
        """Some servers say `tool_calls` although the output limit cut the reply, which the count of tokens betrays."""
        said, most = completion.usage.output_tokens, self._max_output_tokens
        unread = any(call.invalid is not None for call in completion.message.tool_calls)
        return completion.finish_reason == "length" or said == most or (said > most and unread)

    def results(self, calls: Sequence[ToolCall], observations: Sequence[str]) -> list[Message]:
        self._used_ids.update(call.id for call in calls)
        return [Message.tool(call.id, text) for call, text in zip(calls, observations, strict=True)]


class JsonDialect:
    """One JSON object a reply; one tool an iteration; the observation comes back as a user message.

    A small model gets a stricter schema, with one alternative for each tool and short reasoning, and one tool step:
    after its first observation it writes the answer as plain text, as its examples show.
    """

    json_contract = True

    def __init__(self, registry: ToolRegistry, abilities: Mapping[str, bool]) -> None:
        self._abilities = abilities
        self._small = abilities.get("small", False)
        self._saw_result = False
        self.offer(registry)

    def offer(self, registry: ToolRegistry) -> None:
        self._definitions = [tool.definition for tool in registry]
        self._format: Options = {}
        if self._abilities.get("json_schema"):
            schema = small_schema(registry) if self._small else reply_schema(registry)
            self._format = {"response_format": _schema_format(schema)}
        elif self._abilities.get("json_mode"):
            self._format = {"response_format": {"type": "json_object"}}

    def options(self, tool_turns: int) -> Options:
        return {} if self.speaks(tool_turns) else self._format

    def speaks(self, tool_turns: int) -> bool:
        return self._small and tool_turns > 0

    def read(self, completion: Completion, iteration: int) -> Turn:
        message = Message.assistant(completion.message.text)
        text, thoughts = message.text, completion.message.reasoning
        if self._small and self._saw_result:
            return Turn("final" if text.strip() else "empty", message, text, thoughts)
        reply = extract_json(text) or {}
        reasoning = _as_text(reply.get("reasoning")) or thoughts
        name = reply.get("tool_name")
        if isinstance(name, str) and name and (reply.get("type") == "tool_call" or "answer" not in reply):
            return Turn(
                "tools", message, reasoning=reasoning, calls=(_call_of(name, reply.get("tool_args"), iteration),)
            )
        if reply.get("answer") is None:
            return self._read_other_form(message, reasoning, iteration)
        answer = _as_text(reply["answer"])
        return Turn("final" if answer.strip() else "empty", message, answer, reasoning)

    def _read_other_form(self, message: Message, reasoning: str, iteration: int) -> Turn:
        """Models that know other contracts better keep those. One call an iteration here too: the first."""
        text = message.text
        react = read_react_text(text)
        if react is not None and react.action is not None:
            given = react.raw_input if react.action_input is None else react.action_input
            call = _call_of(react.action, given, iteration)
            return Turn("tools", message, reasoning=reasoning or react.thought, calls=(call,))
        if react is not None:
            return Turn("final", message, react.answer, reasoning or react.thought)
        leaked = read_leaked_calls(text, self._definitions)
        if leaked is not None and leaked[1]:
            name, arguments = leaked[1][0]
            return Turn("tools", message, reasoning=reasoning, calls=(_call_of(name, arguments, iteration),))
        if leaked is not None or not text.strip():  # markup that cannot be read is never shown
            return Turn("empty", message, "", reasoning)
        return Turn("unparseable", message, text, reasoning)

    def results(self, calls: Sequence[ToolCall], observations: Sequence[str]) -> list[Message]:
        self._saw_result = True
        return [Message.user(f"Observation: {text}") for text in observations]


def _call_of(name: str, arguments: Any, iteration: int) -> ToolCall:
    if arguments is None:
        arguments = {}
    call_id = f"call_{iteration}_0"
    if isinstance(arguments, str):  # encoded twice
        value, end = json_at(arguments, 0)
        arguments = value if isinstance(value, dict) and end == len(arguments) else arguments
    if not isinstance(arguments, dict):
        invalid = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return ToolCall(call_id, name, {}, invalid=invalid)
    return _without_nan(ToolCall(call_id, name, arguments))


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _with_unique_id(call: ToolCall, own_id: str, used: set[str]) -> ToolCall:
    """Providers leave ids out, repeat them within a reply, and use them again in later ones."""
    if not call.id or call.id in used:
        call = replace(call, id=own_id)
    used.add(call.id)
    return call


def _without_nan(call: ToolCall) -> ToolCall:
    if call.invalid is None and not is_finite(call.arguments):
        return replace(call, arguments={}, invalid=json.dumps(call.arguments, ensure_ascii=False))
    return call


def _schema_format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}


FINAL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": ["final_answer"]},
        "reasoning": {"type": "string", "maxLength": 100},
        "answer": {"type": "string"},
    },
    "required": ["type", "reasoning", "answer"],
    "additionalProperties": False,
}


def reply_schema(registry: ToolRegistry) -> dict[str, Any]:
    """The contract of a reply."""
    if not len(registry):
        return {**FINAL_SCHEMA, "properties": {**FINAL_SCHEMA["properties"], "reasoning": {"type": "string"}}}
    return {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["tool_call", "final_answer"]},
            "reasoning": {"type": "string"},
            "tool_name": {"type": "string", "enum": registry.names},
            "tool_args": {"type": "object"},
            "answer": {"type": "string"},
        },
        "required": ["type", "reasoning"],
    }


def small_schema(registry: ToolRegistry) -> dict[str, Any]:
    """The same contract with nothing left open, for models that are too small to keep it by themselves."""
    calls = [
        {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["tool_call"]},
                "reasoning": {"type": "string", "maxLength": 100},
                "tool_name": {"type": "string", "enum": [tool.name]},
                "tool_args": tool.definition["function"]["parameters"],
            },
            "required": ["type", "reasoning", "tool_name", "tool_args"],
            "additionalProperties": False,
        }
        for tool in registry
    ]
    return {"anyOf": [*calls, FINAL_SCHEMA]} if calls else FINAL_SCHEMA
