"""A web service that keeps each request as it arrived and answers what the test wants."""

import asyncio
from dataclasses import dataclass
from typing import Any

from tests.hostile import HostileServer


@dataclass(frozen=True, slots=True)
class Received:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Service(HostileServer):
    def __init__(self) -> None:
        super().__init__()
        self.reply: tuple[int, str, bytes] = (200, "application/json", b'{"ok": true}')

    @property
    def received(self) -> list[Received]:
        found = []
        for head, body in zip(self.requests, self.bodies, strict=True):
            first, *lines = head.rstrip().split("\r\n")
            method, target, _ = first.split(" ")
            pairs = (line.split(": ", 1) for line in lines)
            found.append(Received(method, target, {name.lower(): value for name, value in pairs}, body))
        return found

    @property
    def last(self) -> Received:
        return self.received[-1]

    async def _answer(self, path: str, writer: asyncio.StreamWriter) -> None:
        status, kind, body = self.reply
        head = (
            f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()

    def setup(self, **values: Any) -> Any:
        """A connector's setup for this service, which is in the inner network."""
        from tools_admin.connectors.base import Setup

        settings = {"base_url": f"{self.url}/api", **values.pop("settings", {})}
        return Setup(settings, allowed_hosts=frozenset({f"127.0.0.1:{self.port}"}), timeout=10, **values)
