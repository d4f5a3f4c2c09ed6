"""One model call whose text goes out while it comes in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from .errors import IncompleteStream
from .events import Emit, answer_delta, answer_start, send
from .messages import Chunk, Completion, Usage


class AnswerWriter:
    """Sends text as answer events. Each attempt that says anything has its own number."""

    def __init__(self, emit: Emit | None, attempt: int, on_text: Callable[[str], None] | None = None) -> None:
        self._emit = emit
        self._on_text = on_text
        self._open = False
        self._offset = 0
        self.attempt = attempt

    @property
    def has_spoken(self) -> bool:
        """Whether this attempt has sent any text."""
        return self._open

    async def write(self, text: str) -> None:
        if not self._open:
            self._open, self._offset = True, 0
            self.attempt += 1
            await send(self._emit, answer_start(self.attempt))
        if self._emit is not None:
            await send(self._emit, answer_delta(text, self._offset, self.attempt))
        self._offset += len(text)
        if self._on_text is not None:
            self._on_text(text)

    def abandon(self) -> None:
        """What was sent does not count; the next text begins a new attempt."""
        self._open = False

    async def copy(self, chunks: AsyncIterator[Chunk]) -> Completion:
        """Writes the text of a stream and returns the whole reply; raises what the stream raises."""
        last = Chunk()
        try:
            async for chunk in chunks:
                if chunk.content:
                    await self.write(chunk.content)
                if chunk.message is not None:
                    last = chunk
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()
        if last.message is None:
            raise IncompleteStream("the stream ended without its last chunk")
        return Completion(last.message, last.finish_reason or "stop", last.usage or Usage())
