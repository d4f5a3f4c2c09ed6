"""One model call of the loop, tried again where that may help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .attempts import RetryPolicy, with_retries
from .errors import BadModelRequest
from .history import validate_pairing
from .messages import Completion, Message
from .models import ChatModel
from .prompts import UNREADABLE_CALL
from .streaming import AnswerWriter


async def complete(
    model: ChatModel,
    messages: Sequence[Message],
    options: dict[str, Any],
    retry: RetryPolicy,
    patience: float | None,
    writer: AnswerWriter | None = None,
) -> Completion:
    """The model's reply; with a `writer` its text goes out while it comes in. `patience` bounds the waits.

    A server that could not read the model's own tool call has refused the reply and not the request: the model is
    told so, once. Any other refusal is the caller's.
    """
    validate_pairing(messages)
    try:
        return await with_retries(retry, lambda: _attempt(model, messages, options, writer), patience)
    except BadModelRequest as error:
        if error.code != "tool_use_failed":
            raise
    told = [*messages, Message.user(UNREADABLE_CALL)]
    return await with_retries(retry, lambda: _attempt(model, told, options, writer), patience)


async def _attempt(
    model: ChatModel, messages: Sequence[Message], options: dict[str, Any], writer: AnswerWriter | None
) -> Completion:
    if writer is None:
        return await model.chat(messages, **options)
    writer.abandon()
    return await writer.copy(model.stream_chat(messages, **options))
