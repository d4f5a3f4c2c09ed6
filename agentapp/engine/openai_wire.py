"""The chat completions format: messages out, replies and stream chunks in, with the quirks of its many servers."""

from __future__ import annotations

import hashlib
import json
import re
import string
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from .errors import BadModelRequest, ContentFiltered, ModelError
from .leaked_calls import take_out_calls
from .messages import Completion, Message, ToolCall, Usage
from .models import ToolDefinitions
from .openai_errors import classify, error_object
from .think import split_thinking
from .tokens import estimate_tokens, text_tokens

_ALPHABET = string.ascii_letters + string.digits
_NAME_CHARS = re.compile(r"[^\w.:-]", re.ASCII)
_CALL_KEYS = {"id", "type", "function", "index"}


class WireStyle(NamedTuple):
    """What an endpoint wants differently."""

    echo_reasoning: bool = False
    short_ids: bool = False


def encode_messages(messages: Sequence[Message], style: WireStyle) -> bytes:
    """The messages as a JSON array; each is encoded once for each style."""
    return b"[%b]" % b",".join([message.cache.get(style) or _encode(message, style) for message in messages])


def _encode(message: Message, style: WireStyle) -> bytes:
    encoded = message.cache[style] = dump_json(_wire(message, style))
    return encoded


def short_id(call_id: str) -> str:
    """Nine letters and digits, always the same ones for an id."""
    number = int.from_bytes(hashlib.sha256(call_id.encode("utf-8", "replace")).digest())
    digits = []
    for _ in range(9):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def dump_json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        # Half an emoji, which no provider takes, or an integer beyond 64 bits.
        return json.dumps(_without_surrogates(value), ensure_ascii=False).encode()


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_without_surrogates(name): _without_surrogates(item) for name, item in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list | tuple) else value


def _wire(message: Message, style: WireStyle) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        data["content"] = message.content or None
        data["tool_calls"] = [_wire_call(call, style) for call in message.tool_calls]
        if style.echo_reasoning and message.reasoning:
            data["reasoning_content"] = message.reasoning
    if message.tool_call_id is not None:
        data["tool_call_id"] = short_id(message.tool_call_id) if style.short_ids else message.tool_call_id
    if message.name:
        data["name"] = message.name
    return data


def _wire_call(call: ToolCall, style: WireStyle) -> dict[str, Any]:
    call_id = short_id(call.id) if style.short_ids else call.id
    # A model may have made a name up that no provider takes back.
    name = _NAME_CHARS.sub("_", call.name)[:64] or "unknown"
    function = {"name": name, "arguments": dump_json(call.arguments).decode()}
    return {**(call.extra or {}), "id": call_id, "type": "function", "function": function}


def read_reply(body: bytes, headers: Mapping[str, str]) -> ReplyBuilder:
    """The reply in an answer with status 200; raises the `ModelError` that it may hold instead."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise not_a_completion(body) from None
    if (error := error_object(value)) is not None:
        raise classify(None, error, headers)
    if not isinstance(value, dict) or not isinstance(value.get("choices"), list):
        raise not_a_completion(body)
    reply = ReplyBuilder()
    reply.add(value)
    return reply


def not_a_completion(body: bytes) -> ModelError:
    beginning = body[:200].decode("utf-8", "replace").strip()
    return BadModelRequest(f"the endpoint did not answer with a completion: {beginning or 'an empty body'}")


def read_usage(usage: Mapping[str, Any]) -> Usage:
    prompt = usage.get("prompt_tokens_details") or {}
    output = usage.get("completion_tokens_details") or {}
    return Usage(
        _count(usage.get("prompt_tokens"), usage.get("input_tokens")),
        _count(usage.get("completion_tokens"), usage.get("output_tokens")),
        _count(prompt.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cached_tokens")),
        _count(output.get("reasoning_tokens"), usage.get("reasoning_tokens")),
        calls=1,
    )


def _count(*values: Any) -> int:
    return next((int(value) for value in values if isinstance(value, int | float) and value), 0)


class ReplyBuilder:
    """Puts a reply together from one message or from many deltas: one interpreter for both."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._by_index: dict[Any, dict[str, Any]] = {}
        self._refusal = ""
        self._usage: Usage | None = None
        self.finish_reason: str | None = None

    def add(self, value: Mapping[str, Any]) -> tuple[str, str]:
        """Takes a reply or a chunk of one in; returns its text and its reasoning."""
        try:
            if usage := value.get("usage"):
                self._usage = read_usage(usage)
            choices = value.get("choices")
            return self._add_choice(choices[0]) if choices else ("", "")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadModelRequest(f"the endpoint's answer has an unknown form: {error}") from error

    def _add_choice(self, choice: Mapping[str, Any]) -> tuple[str, str]:
        delta = choice.get("delta") or choice.get("message") or {}
        if reason := choice.get("finish_reason"):
            self.finish_reason = str(reason)
        content = _text_of(delta.get("content"))
        reasoning = _text_of(delta.get("reasoning_content") or delta.get("reasoning"))
        if content:
            self._content.append(content)
        if reasoning:
            self._reasoning.append(reasoning)
        if refusal := delta.get("refusal"):
            self._refusal += str(refusal)
        is_whole = "delta" not in choice
        for piece in delta.get("tool_calls") or ():
            self._add_call(piece, is_whole)
        return content, reasoning

    def _add_call(self, piece: Mapping[str, Any], is_whole: bool) -> None:
        function = piece.get("function") or {}
        call_id, name = _text_of(piece.get("id")), _text_of(function.get("name"))
        arguments = function.get("arguments")
        index = piece.get("index")
        call = self._by_index.get(index) if index is not None else (self._calls[-1] if self._calls else None)
        if call is None or is_whole or _begins_anew(call, call_id, name, arguments):
            call = {"id": call_id, "name": name, "arguments": "", "extra": {}}
            self._calls.append(call)
            self._by_index[index] = call
        call["id"] = call["id"] or call_id
        call["name"] = call["name"] or name
        if isinstance(arguments, str):
            call["arguments"] += arguments
        elif arguments is not None:
            call["arguments"] = orjson.dumps(arguments).decode()
        call["extra"].update({key: value for key, value in piece.items() if key not in _CALL_KEYS and value})

    def completion(self, messages: Sequence[Message], tools: ToolDefinitions) -> Completion:
        """The whole reply; raises `ContentFiltered` for a refusal or a filter.

        Calls that arrived as text are taken out of it when there is no proper call, and made when there are `tools`.
        Missing usage is estimated from the request's `messages` and marked.
        """
        content, thoughts = split_thinking("".join(self._content))
        reasoning = "".join(self._reasoning) + thoughts
        if self._refusal and not content:
            raise ContentFiltered(self._refusal)
        if self.finish_reason == "content_filter":
            raise ContentFiltered(content or "the provider's content filter stopped the reply")
        calls = [_finished_call(call) for call in self._calls]
        if not calls:
            content, calls = take_out_calls(content, tools)
        message = Message("assistant", content, tool_calls=calls, reasoning=reasoning)
        reason = self.finish_reason or ("tool_calls" if calls else "stop")
        return Completion(message, reason, self._usage or _estimated(messages, tools, message))


def _begins_anew(call: Mapping[str, Any], call_id: str, name: str, arguments: Any) -> bool:
    """Another id or another name is another call. What repeats them goes on with an unfinished one."""
    if call_id and call["id"] and call_id != call["id"]:
        return True
    if not name or not call["name"]:
        return False
    if call_id and call["id"]:
        return bool(arguments and _is_whole(call["arguments"]))
    return bool(name != call["name"] or _is_whole(call["arguments"]))


def _is_whole(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _finished_call(call: Mapping[str, Any]) -> ToolCall:
    text: str = call["arguments"]
    extra = call["extra"] or None
    if not text.strip():
        return ToolCall(call["id"], call["name"], {}, extra=extra)
    try:
        value = orjson.loads(text)
        if isinstance(value, str):  # encoded twice
            value = orjson.loads(value) if value.strip() else {}
    except orjson.JSONDecodeError:
        return ToolCall(call["id"], call["name"], {}, invalid=text, extra=extra)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        return ToolCall(call["id"], call["name"], {}, invalid=text, extra=extra)
    return ToolCall(call["id"], call["name"], value, extra=extra)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return ""


def _estimated(messages: Sequence[Message], tools: ToolDefinitions, reply: Message) -> Usage:
    said = estimate_tokens([reply]) + text_tokens(reply.reasoning)
    return Usage(estimate_tokens(messages, tools), said, calls=1, estimated=True)
