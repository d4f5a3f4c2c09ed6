"""Replies in the form of OpenAI's interface: whole, and as a stream of chunks."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

import orjson

from conversations.completions.errors import CompletionError
from conversations.completions.reply import Ended, Piece, Step
from conversations.completions.schemas import CompletionIn
from conversations.models import Run

# How long the status line of a stream waits for its first piece, so that a failure has a status of its own.
HOLD_SECONDS = 10.0

Pieces = AsyncGenerator[Piece, None]


async def whole(run: Run, body: CompletionIn, pieces: Pieces) -> dict[str, Any]:
    """A `chat.completion`; raises CompletionError."""
    steps = []
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Step):
                steps.append(asdict(piece))
            elif isinstance(piece, Ended):
                break
        else:
            raise AssertionError("a reply ends with `Ended`")
    message: dict[str, Any] = {"role": "assistant", "content": piece.text, "refusal": None}
    if piece.tool_calls:
        message |= {"content": piece.text or None, "tool_calls": piece.tool_calls}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": piece.finish_reason}
    reply = {**_head(run, body, "chat.completion"), "choices": [choice], "usage": usage(piece.usage)}
    return {**reply, "x_steps": steps} if body.x_steps else reply


class Opened:
    """A stream whose first pieces are there."""

    def __init__(self, run: Run, body: CompletionIn, pieces: Pieces) -> None:
        self._pieces, self._body = pieces, body
        self._first: list[Piece] = []
        self._with_usage = bool(body.stream_options and body.stream_options.include_usage)
        self._head = _head(run, body, "chat.completion.chunk")
        # A piece of text is by far the most frequent: around it everything is encoded once.
        self._before, self._after = self._chunk({"content": "\0"}).split(b'"\\u0000"')

    async def begin(self) -> None:
        """Waits for text, the end or a while; raises CompletionError."""
        until = asyncio.get_running_loop().time() + HOLD_SECONDS
        async for piece in self._pieces:
            self._first.append(piece)
            if isinstance(piece, str | Ended) or asyncio.get_running_loop().time() > until:
                return

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body of the answer. A failure on the way is its last event."""
        async with aclosing(self._pieces):
            try:
                yield self._chunk({"role": "assistant", "content": ""})
                for piece in self._first:
                    for part in self._parts(piece):
                        yield part
                if not (self._first and isinstance(self._first[-1], Ended)):
                    async for piece in self._pieces:
                        for part in self._parts(piece):
                            yield part
            except CompletionError as error:
                yield _event(error.body)
            yield b"data: [DONE]\n\n"

    def _parts(self, piece: Piece) -> list[bytes]:
        if isinstance(piece, str):
            return [self._before + orjson.dumps(piece) + self._after]
        if piece is None:
            return [b": still there\n\n"]
        if isinstance(piece, Step):
            return [self._chunk({}, x_steps=[asdict(piece)])] if self._body.x_steps else []
        parts = []
        if piece.tool_calls:
            calls = [{"index": number, **call} for number, call in enumerate(piece.tool_calls)]
            parts.append(self._chunk({"tool_calls": calls}))
        parts.append(self._chunk({}, piece.finish_reason))
        if self._with_usage:
            parts.append(_event({**self._head, "choices": [], "usage": usage(piece.usage)}))
        return parts

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk = {**self._head, "choices": [choice], **more}
        return _event({**chunk, "usage": None} if self._with_usage else chunk)


def usage(sums: dict[str, Any]) -> dict[str, Any]:
    """Of all model calls of a run."""
    read, written = sums.get("input_tokens", 0), sums.get("output_tokens", 0)
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": sums.get("cached_tokens", 0)},
        "completion_tokens_details": {"reasoning_tokens": sums.get("reasoning_tokens", 0)},
    }


def _head(run: Run, body: CompletionIn, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{run.id.hex}", "object": kind, "created": int(time.time()), "model": body.model}


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"
