"""How large a context is: an estimate that needs no tokenizer."""

from __future__ import annotations

import json
from collections.abc import Iterable

from .messages import Message
from .models import ChatModel

MESSAGE_TOKENS = 4
IMAGE_TOKENS = 765
LEAST_BUDGET = 4_000


def estimate_text(text: str) -> int:
    """ASCII characters by four, all others by one and a half; at least 1 for any text."""
    if not text:
        return 0
    ascii_chars = len(text) if text.isascii() else sum(character.isascii() for character in text)
    return max(1, round(ascii_chars / 4 + (len(text) - ascii_chars) / 1.5))


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Tokens of a message list, each message counted once however often it is asked about."""
    return sum(_estimate(message) for message in messages)


def budget_for(model: ChatModel) -> int:
    """What a request may hold, in tokens: the context without the reserve for the reply, at least 4,000."""
    return max(LEAST_BUDGET, model.context_size - model.max_output_tokens)


def _estimate(message: Message) -> int:
    known: int | None = message.cache.get("tokens")
    if known is None:
        parts = [message.content] if isinstance(message.content, str) else message.content
        known = MESSAGE_TOKENS + sum(
            estimate_text(part)
            if isinstance(part, str)
            else IMAGE_TOKENS
            if part.get("type") == "image_url"
            else estimate_text(str(part.get("text", "")))
            for part in parts
        )
        known += sum(
            estimate_text(call.name) + estimate_text(json.dumps(call.arguments, ensure_ascii=False, default=str))
            for call in message.tool_calls
        )
        message.cache["tokens"] = known
    return known
