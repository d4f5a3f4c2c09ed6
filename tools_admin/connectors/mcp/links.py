"""The connections of a process: one for each server and, where people sign in themselves, each person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from weakref import WeakKeyDictionary

from tools_admin.connectors.mcp.link import Link

SWEEP_SECONDS = 60.0


class Links:
    """Of one event loop: connections belong to the loop they were made on."""

    def __init__(self) -> None:
        self._links: dict[Hashable, Link] = {}
        self._sweeper: asyncio.Task[None] | None = None

    def get(self, key: Hashable, make: Callable[[], Link]) -> Link:
        """The link under `key`, which names server and settings; links for older settings become idle and go."""
        if key not in self._links:
            self._links[key] = make()
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = asyncio.create_task(self._sweep())
        return self._links[key]

    def forget(self, key: Hashable) -> None:
        if link := self._links.pop(key, None):
            link.close()

    async def close_all(self) -> None:
        links, self._links = list(self._links.values()), {}
        for link in links:
            await link.closed()

    async def _sweep(self) -> None:
        while self._links:
            await asyncio.sleep(SWEEP_SECONDS)
            for key in [key for key, link in self._links.items() if link.is_idle]:
                self.forget(key)


_links: WeakKeyDictionary[asyncio.AbstractEventLoop, Links] = WeakKeyDictionary()


def links() -> Links:
    """Those of the running loop."""
    return _links.setdefault(asyncio.get_running_loop(), Links())
