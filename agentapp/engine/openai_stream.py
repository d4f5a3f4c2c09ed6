"""A streamed reply: bytes of an event stream in, pieces of text and reasoning out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from .errors import IncompleteStream, ModelError
from .leaked_calls import MarkupHold
from .messages import Chunk, Message
from .models import ToolDefinitions
from .openai_errors import classify, error_object
from .openai_wire import ReplyBuilder, not_a_completion
from .think import ThinkFilter

_NO_DATA = (b":", b"event:", b"id:", b"retry:")


class StreamReader:
    """Reads one reply, without doing any input or output itself.

    Both methods raise the `ModelError` that the stream holds or amounts to.
    """

    def __init__(self, messages: Sequence[Message], tools: ToolDefinitions) -> None:
        self._messages = messages
        self._tools = tools
        self._reply = ReplyBuilder()
        self._think = ThinkFilter()
        self._hold = MarkupHold()
        self._rest = b""
        self._seen = False
        self.done = False

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """What the next bytes add, in one piece, however many tokens they hold. After `done` nothing does.

        What came before an error is given out first.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        contents, thoughts = [], []
        error: ModelError | None = None
        try:
            for line in lines:
                if line and not self.done:
                    content, reasoning = self._read(line)
                    contents.append(content)
                    thoughts.append(reasoning)
        except ModelError as raised:
            error = raised
        content, thought = self._think.feed("".join(contents))
        content, reasoning = self._hold.feed(content), "".join(thoughts) + thought
        if content or reasoning:
            yield Chunk(content, reasoning)
        if error is not None:
            raise error

    def end(self) -> Iterator[Chunk]:
        """What was held back, then the last chunk with the whole reply."""
        yield from self.feed(b"\n")
        content, thoughts = self._think.flush()
        content = self._hold.feed(content)
        if content or thoughts:
            yield Chunk(content, thoughts)
        if not self.done and self._reply.finish_reason is None:
            raise IncompleteStream("the stream ended without an end" if self._seen else "the stream was empty")
        whole = self._reply.completion(self._messages, self._tools)
        if rest := whole.message.text[self._hold.released :]:
            yield Chunk(rest)
        yield Chunk(finish_reason=whole.finish_reason, usage=whole.usage, message=whole.message)

    def _read(self, line: bytes) -> tuple[str, str]:
        """The line's text and reasoning."""
        value = _loads(line[6:]) if line.startswith(b"data: {") else self._unusual(line)
        if value is None:
            return "", ""
        self._seen = True
        return self._reply.add(value)

    def _unusual(self, line: bytes) -> dict[str, Any] | None:
        """The value in a line that is no plain chunk, if there is one; raises the error that it may be instead."""
        line = line.strip()
        if not line or line.startswith(_NO_DATA):
            return None
        if line.startswith(b"{"):  # a whole reply or an error, sent to a stream request
            return _loads(line)
        name, _, data = line.partition(b":")
        if name not in (b"data", b"error"):
            raise not_a_completion(line)
        if data.strip() == b"[DONE]":
            self.done = True
            return None
        return _loads(data, is_error=name == b"error")


def _loads(data: bytes, *, is_error: bool = False) -> dict[str, Any] | None:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise IncompleteStream(f"a chunk is not JSON: {data[:100].decode('utf-8', 'replace')}") from None
    if not isinstance(value, dict):
        if is_error:
            raise classify(None, error_object(value) or {"message": str(value)})
        return None
    if is_error or value.get("error"):
        raise classify(None, error_object(value) or value)
    return value
