"""Getting an object out of a model: forced call, then JSON mode, then plain text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .errors import ModelError, StructuredOutputError
from .journal import Journal
from .json_text import extract_json
from .messages import Completion, Message, Usage
from .models import ChatModel
from .scope import JournaledModel, journaled

T = TypeVar("T")


class Unset:
    """The type of `UNSET`: no default was given, which is not the same as a default of None."""


UNSET = Unset()

ParseFn = Callable[[dict[str, Any]], Any]
RegexFallback = Callable[[str], dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class StructuredCallResult(Generic[T]):
    """`level_used` is native, json_mode, plain_text or default."""

    value: T
    raw_data: dict[str, Any]
    level_used: str
    llm_calls: int
    usage: Usage


async def structured_llm_call(
    model: ChatModel,
    messages: Sequence[Message],
    schema: dict[str, Any],
    *,
    function_name: str = "respond",
    parse_fn: ParseFn | None = None,
    default_value: Any = UNSET,
    regex_fallback: RegexFallback | None = None,
    journal: Journal | None = None,
    scope: str = "",
    role: str = "structured",
) -> StructuredCallResult[Any]:
    """An object with the required keys of `schema` that `parse_fn` accepts.

    At most one native call, two in JSON mode and two in plain text, as far as the model's abilities go. A model
    error ends its level. When nothing helps, the default is returned or `StructuredOutputError` is raised.
    """
    bound = model if isinstance(model, JournaledModel) else journaled(model, journal, scope, role)
    ladder = _Ladder(bound, messages, schema, parse_fn, regex_fallback)
    abilities = model.abilities
    found = None
    if abilities.get("tool_call") and abilities.get("tool_choice", True):
        found = await ladder.native(function_name)
    if found is None and abilities.get("json_mode"):
        found = await ladder.text("json_mode", {"type": "json_object"})
    if found is None:
        found = await ladder.text("plain_text", None)
    if found is not None:
        return found
    if isinstance(default_value, Unset):
        raise StructuredOutputError(f"no usable object in the last reply: {ladder.last_text[:200]}")
    return StructuredCallResult(default_value, {}, "default", ladder.calls, ladder.usage)


class _Ladder:
    def __init__(
        self,
        model: JournaledModel,
        messages: Sequence[Message],
        schema: dict[str, Any],
        parse_fn: ParseFn | None,
        regex_fallback: RegexFallback | None,
    ) -> None:
        self._model = model
        self._messages = messages
        self._schema = schema
        self._parse_fn = parse_fn
        self._regex_fallback = regex_fallback
        self.calls = 0
        self.usage = Usage()
        self.last_text = ""

    async def native(self, function_name: str) -> StructuredCallResult[Any] | None:
        function = {"name": function_name, "description": "Gives the result.", "parameters": self._schema}
        completion = await self._ask(
            self._messages,
            tools=[{"type": "function", "function": function}],
            tool_choice={"type": "function", "function": {"name": function_name}},
        )
        if completion is None:
            return None
        return self._accept(_data_of(completion.message), "native")

    async def text(self, level: str, response_format: dict[str, Any] | None) -> StructuredCallResult[Any] | None:
        schema = json.dumps(self._schema, ensure_ascii=False)
        wish = f"Reply with one JSON object and nothing else. It must match this JSON Schema:\n{schema}"
        messages = [*self._messages, Message.user(wish)]
        for _ in range(2):
            completion = await self._ask(messages, response_format=response_format)
            if completion is None:
                return None
            text = completion.message.text
            data = _data_of(completion.message)
            if data is None and level == "plain_text" and self._regex_fallback is not None:
                data = _tried(self._regex_fallback, text)
            if (found := self._accept(data, level)) is not None:
                return found
            repeat = Message.user(f"That was not the object that was asked for. {wish}")
            messages = [*messages, *([Message.assistant(text)] if text else []), repeat]
        return None

    async def _ask(self, messages: Sequence[Message], **options: Any) -> Completion | None:
        self.calls += 1
        try:
            completion = await self._model.chat(messages, **options)
        except ModelError as error:
            self.last_text = self.last_text or str(error)
            return None
        self.usage += completion.usage
        self.last_text = completion.message.text or str([call.invalid for call in completion.message.tool_calls])
        return completion

    def _accept(self, data: dict[str, Any] | None, level: str) -> StructuredCallResult[Any] | None:
        if data is None or any(key not in data for key in self._schema.get("required", ())):
            return None
        value: Any = data
        if self._parse_fn is not None:
            value = _tried(self._parse_fn, data)
        return None if value is None else StructuredCallResult(value, data, level, self.calls, self.usage)


def _data_of(message: Message) -> dict[str, Any] | None:
    """The object in a reply, whichever way it came: a record may be of a model that spoke otherwise."""
    if not message.tool_calls:
        return extract_json(message.text)
    call = message.tool_calls[0]
    return call.arguments if call.invalid is None else extract_json(call.invalid)


def _tried(parse: Callable[[Any], Any], given: Any) -> Any:
    """What a caller's function makes of a reply. It may refuse in any way: that is a failed attempt."""
    try:
        return parse(given)
    except Exception:  # noqa: BLE001
        return None
