"""Estimates of how many tokens something takes, without a tokenizer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import orjson

from .messages import Message
from .models import ChatModel

MESSAGE_TOKENS = 4
IMAGE_TOKENS = 765
LEAST_BUDGET = 4_000


def text_tokens(text: str) -> int:
    """A quarter of a token for an ASCII character, two thirds for any other."""
    if not text:
        return 0
    ascii_only = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return max(1, int(ascii_only / 4 + (len(text) - ascii_only) / 1.5))


def json_tokens(value: Any) -> int:
    if not value:
        return 0
    try:
        return text_tokens(orjson.dumps(value, default=str).decode())
    except orjson.JSONEncodeError:  # half an emoji, or an integer beyond 64 bits
        return text_tokens(json.dumps(value, default=str, ensure_ascii=False))


def estimate_tokens(messages: Iterable[Message], tools: Iterable[dict[str, Any]] = ()) -> int:
    """What a request with these messages and tool definitions takes, roughly."""
    return sum(map(_message_tokens, messages)) + sum(map(json_tokens, tools))


def _message_tokens(message: Message) -> int:
    known: int | None = message.cache.get("tokens")
    if known is None:
        parts = message.content if isinstance(message.content, list) else ()
        known = MESSAGE_TOKENS + text_tokens(message.text)
        known += IMAGE_TOKENS * sum(part.get("type") != "text" for part in parts)
        known += sum(text_tokens(call.name) + json_tokens(call.arguments) for call in message.tool_calls)
        message.cache["tokens"] = known
    return known


def budget_for(model: ChatModel) -> int:
    """How much of the model's context a request may fill."""
    return max(LEAST_BUDGET, model.context_size - model.max_output_tokens)
