"""What one client is still to get. Bounded: live events never wait for a client, and no client fills the memory."""

import asyncio
from collections import deque
from collections.abc import Callable

LIMIT_BYTES = 1024 * 1024
_ENTRY_BYTES = 100  # what an entry costs beside its text


class Outbox:
    """A queue of encoded messages. `overflow` is called once, when live events find it full; then it takes nothing."""

    def __init__(self, overflow: Callable[[], None], limit: int = LIMIT_BYTES) -> None:
        self._overflow, self._limit = overflow, limit
        self._bodies: deque[bytes] = deque()
        self._bytes = 0
        self._filled, self._room = asyncio.Event(), asyncio.Event()
        self._offering, self._ending = 0, False
        self.closed = False

    def put(self, body: bytes) -> None:
        """A live event: too many of them for this client, and it is too slow."""
        if self.closed:
            return
        if self._bodies and self._bytes + len(body) + _ENTRY_BYTES > self._limit:
            self.fail()
            return
        self._add(body)

    async def offer(self, body: bytes) -> None:
        """A piece of history: waits for room, for the database has it as long as it takes."""
        self._offering += 1
        try:
            while self._bodies and self._bytes + len(body) + _ENTRY_BYTES > self._limit:
                self._room.clear()
                await self._room.wait()
            if not self.closed:
                self._add(body)
        finally:
            self._offering -= 1
            self._filled.set()

    async def get(self) -> bytes | None:
        """The next message; None when no more will come."""
        if not await self._something():
            return None
        body = self._bodies.popleft()
        self._bytes -= len(body) + _ENTRY_BYTES
        self._room.set()
        return body

    async def get_all(self) -> list[bytes]:
        """All messages that are there, at least one; none when no more will come."""
        await self._something()
        bodies = list(self._bodies)
        self._bodies.clear()
        self._bytes = 0
        self._room.set()
        return bodies

    async def _something(self) -> bool:
        while not self._bodies:
            if self.closed or (self._ending and not self._offering):
                return False
            self._filled.clear()
            await self._filled.wait()
        return True

    def end(self) -> None:
        """What is in it is still to be fetched, then it is over."""
        self._ending = True
        self._filled.set()

    def fail(self) -> None:
        """The client does not get what it should: it must come back."""
        if not self.closed:
            self.close()
            self._overflow()

    def close(self) -> None:
        """Forgets everything and takes nothing more."""
        self.closed = True
        self._bodies.clear()
        self._bytes = 0
        self._room.set()
        self._filled.set()

    def _add(self, body: bytes) -> None:
        self._bodies.append(body)
        self._bytes += len(body) + _ENTRY_BYTES
        self._filled.set()
