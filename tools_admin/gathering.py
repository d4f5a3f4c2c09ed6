"""A connection that reads a stream in gulps. A model sends tokens one by one, and waking up for each costs more than
reading it: while a reply keeps coming in small pieces, the next read waits until some of them are there.

Import it only where models are called.
"""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2
import httpx2

PAUSE_SECONDS = 0.025
PATIENT_AFTER = 4  # reads of a reply: plain replies and the first tokens of a stream do not wait
GULP_BYTES = 8_192  # who sends that much at once has gathered already


class GatheringStream(httpcore2.AsyncNetworkStream):
    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._small_reads = 0
        self._not_before = 0.0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        loop = asyncio.get_running_loop()
        if self._small_reads >= PATIENT_AFTER and (pause := self._not_before - loop.time()) > 0:
            await asyncio.sleep(pause)
        data = await self._stream.read(max_bytes, timeout)
        self._small_reads = self._small_reads + 1 if len(data) < GULP_BYTES else 0
        self._not_before = loop.time() + PAUSE_SECONDS
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._small_reads = 0
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        return GatheringStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class GatheringBackend(httpcore2.AnyIOBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return GatheringStream(await super().connect_tcp(host, port, timeout, local_address, socket_options))


class GatheringTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, limits: httpx2.Limits) -> None:
        super().__init__(limits=limits)
        # The pool takes a backend, its wrapper has no argument to pass one on.
        self._pool._network_backend = GatheringBackend()
