"""How model calls leave the process: through one pool of connections, and streams are read in gulps.

A model sends tokens one by one, each a chunk of its own, and waking up for each costs more than reading it: while a
reply keeps coming in small pieces, the next read waits until some of them are there. aiohttp takes a fifth of the time
that the HTTP client of `openai` takes for a request, and less than half for a stream.

Import it only where models are called.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import lru_cache

import aiohttp
import httpx2
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult

from agentapp.addresses import AddressRefused, vetted
from tools_admin.clients import for_program

PATIENT_AFTER = 4  # reads of a reply: plain replies and the first tokens of a stream do not wait
# Seconds between two reads. What comes in half as many pieces costs half as much.
PAUSE, PAUSE_FOR_PROGRAMS, PAUSE_FOR_MANY_PROGRAMS = 0.05, 0.1, 0.2
MANY_PROGRAMS = 5  # that read streams of this loop at once
GULP_BYTES = 8_192  # who sends that much at once has gathered already


class GatheringTransport(httpx2.AsyncBaseTransport):
    """For all clients of one event loop. Follows no redirects and keeps no cookies."""

    def __init__(self, limits: httpx2.Limits) -> None:
        self._limits = limits
        self._session: aiohttp.ClientSession | None = None
        self._programs: set[GatheringStream] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        seconds = request.extensions.get("timeout", {})
        timeout = aiohttp.ClientTimeout(
            connect=seconds.get("pool"), sock_connect=seconds.get("connect"), sock_read=seconds.get("read")
        )
        body = await request.aread()
        with _errors_of_httpx():
            response = await self._open().request(
                request.method,
                yarl.URL(str(request.url), encoded=True),
                headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw],
                data=body or None,
                allow_redirects=False,
                timeout=timeout,
                ssl=_tls() if request.url.scheme == "https" else True,
            )
        stream = GatheringStream(response, self._programs)
        return httpx2.Response(response.status, headers=response.raw_headers, stream=stream)

    async def aclose(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self._limits.max_connections or 0,
                keepalive_timeout=self._limits.keepalive_expiry,
                resolver=_Vetted(),
            )
            # Bodies stay as they are: httpx unpacks them, as it would those of its own transport.
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
        return self._session


class GatheringStream(httpx2.AsyncByteStream):
    """`programs` are the streams that go on for programs, this one among them when it does."""

    def __init__(self, response: aiohttp.ClientResponse, programs: "set[GatheringStream]") -> None:
        self._response, self._programs = response, programs
        if for_program.get():
            programs.add(self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        content = self._response.content
        protocol = self._response.connection.protocol if self._response.connection else None
        # Else it resumes reading for each chunk that is taken out, and every token is a chunk: a tenth of the cost.
        content._low_water = 0
        small_reads = 0
        with _errors_of_httpx():
            while data := await content.readany():
                if protocol is not None and protocol._reading_paused:  # much had come at once
                    protocol.resume_reading()
                yield data
                small_reads = small_reads + 1 if len(data) < GULP_BYTES else 0
                if small_reads >= PATIENT_AFTER:
                    await self._gather()

    async def aclose(self) -> None:
        self._programs.discard(self)
        self._response.close()  # a connection whose reply was read to its end is back in the pool already

    async def _gather(self) -> None:
        """Leaves what comes in to the kernel until the next tick. All streams of the loop have the same, so they wake
        it up together, and what they bring goes on together."""
        transport = self._response.connection.transport if self._response.connection else None
        if transport is None:
            return  # everything is here
        pause = self._pause
        transport.pause_reading()
        try:
            await asyncio.sleep(pause - asyncio.get_running_loop().time() % pause)
        finally:
            transport.resume_reading()

    @property
    def _pause(self) -> float:
        if self not in self._programs:
            return PAUSE
        return PAUSE_FOR_PROGRAMS if len(self._programs) < MANY_PROGRAMS else PAUSE_FOR_MANY_PROGRAMS


class _Vetted(AbstractResolver):
    """Names of endpoints, which administrators chose, may lead to the inner network, but not where clouds hand out
    credentials."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        try:
            addresses = await vetted(host, port, (host.lower().rstrip("."),))
        except AddressRefused as error:
            raise OSError(errno.EACCES, str(error)) from None
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        pass


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx2.ConnectTimeout(str(error)) from error
    except TimeoutError as error:
        raise httpx2.ReadTimeout(str(error)) from error
    except aiohttp.ClientConnectorError as error:
        raise httpx2.ConnectError(str(error)) from error
    except aiohttp.ClientError as error:
        raise httpx2.RemoteProtocolError(str(error) or type(error).__name__) from error
