"""The only HTTP client that may leave the process. Nobody else opens a connection.

`fetch` is for single requests; SDKs that bring their own client get an `OutboundTransport` for it. Both connect only to
addresses that were checked (`agentapp.addresses`), with the host's own name in Host and SNI, keep no cookies, and
bound what comes back: size after decompression, time, type.

OutboundError (an httpx2.TransportError, so that SDKs take it for a failed connection)
├── Refused       the address, redirect or answer is against the rules; trying again is useless
└── Unreachable   no connection, no answer in time
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast
from urllib.parse import quote, unquote

import httpcore2
import httpx2
from django.utils.translation import gettext as _

from agentapp.addresses import AddressRefused, Resolver, vetted

REDIRECTS = 5
STEP_BYTES = 65_536
# What may follow a redirect to another origin: nothing by which a server knows who asks.
_HARMLESS_HEADERS = {"accept", "accept-language", "user-agent"}
Response = httpx2.Response  # what `fetch` gives; others need not import the library
_DEFAULT_LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20)


class OutboundError(httpx2.TransportError):
    """The text is for people and holds no credential."""


class Refused(OutboundError):
    pass


class Unreachable(OutboundError):
    pass


@dataclass(frozen=True, slots=True)
class Policy:
    """What a caller may reach: the public internet, and the hosts ("host" or "host:port") that an admin allowed."""

    allowed_hosts: frozenset[str] = frozenset()
    max_bytes: int | None = 10_000_000

    def allowing(self, url: str) -> "Policy":
        """With the very host and port of this address allowed, wherever it is."""
        parsed = parse(url)
        host = parsed.raw_host.decode().lower().rstrip(".")
        return replace(self, allowed_hosts=self.allowed_hosts | {f"{host}:{port_of(parsed)}"})


def parse(url: str) -> httpx2.URL:
    """The address as it will be used, read once; raises Refused for what is no plain http(s) address."""
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise Refused(_("This is not a valid address.")) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise Refused(_("The address must begin with http:// or https:// and name a host."))
    if parsed.port is not None and not 0 < parsed.port < 65_536:
        raise Refused(_("The address's port is out of range."))
    if parsed.userinfo:
        raise Refused(_("The address must hold no user name or password."))
    return parsed


def port_of(url: httpx2.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def origin(url: httpx2.URL) -> tuple[str, str, int]:
    """Where a credential may go: scheme, host, port."""
    return url.scheme, url.raw_host.decode().lower().rstrip("."), port_of(url)


def join_path(base: str, segments: Iterable[str]) -> str:
    """The base path and one segment a value, below the base whatever the values hold; raises Refused.

    A slash in a value stays inside its segment. Values are looked at as the most eager server would decode them.
    """
    path = base.rstrip("/")
    for segment in segments:
        check_segment(segment)
        path += "/" + quote(segment, safe="")
    return path or "/"


def check_segment(value: str) -> None:
    """Refuses a value that would leave its place in a path."""
    plain = value
    while (decoded := unquote(plain)) != plain:
        plain = decoded
    pieces = plain.replace("\\", "/").split("/")
    if not plain or any(piece in (".", "..") for piece in pieces) or any(ord(letter) < 32 for letter in plain):
        raise Refused(f"{value!r} cannot be part of a path.")


class _VettedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to addresses that were checked. TLS still names the host, because only the connection is pinned."""

    def __init__(self, policy: Policy, inner: httpcore2.AsyncNetworkBackend, resolve: Resolver | None) -> None:
        self._policy, self._inner, self._resolve = policy, inner, resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                addresses = await vetted(host, port, self._policy.allowed_hosts, self._resolve)
        except AddressRefused as error:
            raise Refused(str(error)) from None
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"{host} was not found in time.") from None
        except (OSError, UnicodeError):
            raise httpcore2.ConnectError(f"{host} is unknown.") from None
        for number, address in enumerate(addresses, 1):
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if number == len(addresses):
                    raise
        raise AssertionError("vetted() gives at least one address")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _BoundedStream(httpx2.AsyncByteStream):
    """A body without its compression, and an error once there is more of it than allowed."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int | None, packed: bool) -> None:
        self._stream, self._limit, self._packed = stream, limit, packed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._unpacked() if self._packed else self._stream:
            size += len(piece)
            if self._limit is not None and size > self._limit:
                raise Refused(f"The answer is larger than {self._limit:,} bytes.")
            yield piece

    async def _unpacked(self) -> AsyncIterator[bytes]:
        decoder = None
        async for chunk in self._stream:
            while chunk:
                decoder = decoder or zlib.decompressobj(wbits=31)
                try:
                    piece = decoder.decompress(chunk, STEP_BYTES)
                except zlib.error:
                    raise Refused("The answer's compression is broken.") from None
                chunk, decoder = (decoder.unused_data, None) if decoder.eof else (decoder.unconsumed_tail, decoder)
                if piece:
                    yield piece
        if decoder is not None:
            raise Unreachable("The answer broke off.")

    async def aclose(self) -> None:
        await self._stream.aclose()


class OutboundTransport(httpx2.AsyncHTTPTransport):
    """For SDKs that take an `httpx2.AsyncClient`. Give that client `follow_redirects=False`: credentials in headers
    that it does not know would follow to other origins.

    `backend` makes the connections, `resolve` and `tls` are for tests.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        limits: httpx2.Limits = _DEFAULT_LIMITS,
        backend: httpcore2.AsyncNetworkBackend | None = None,
        resolve: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(verify=tls or _tls(), limits=limits)
        self._policy = policy
        # The pool takes a backend, its wrapper has no argument to pass one on.
        self._pool._network_backend = _VettedBackend(policy, backend or httpcore2.AnyIOBackend(), resolve)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        parse(str(request.url))
        request.headers["Accept-Encoding"] = "gzip"
        response = await super().handle_async_request(request)
        try:
            return self._bounded(response)
        except Refused:
            await response.aclose()
            raise

    def _bounded(self, response: httpx2.Response) -> httpx2.Response:
        headers, limit = response.headers, self._policy.max_bytes
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "", "gzip", "x-gzip"):
            raise Refused(f"The answer is compressed as {encoding[:40]!r}, which was not asked for.")
        packed = encoding.endswith("gzip")
        length = headers.get("content-length", "")
        if limit is not None and not packed and length.isdecimal() and int(length[:20]) > limit:
            raise Refused(f"The answer is larger than {limit:,} bytes.")
        dropped = {b"set-cookie", b"content-encoding"} | ({b"content-length"} if packed else set())
        return httpx2.Response(
            response.status_code,
            headers=[(name, value) for name, value in headers.raw if name.lower() not in dropped],
            stream=_BoundedStream(cast(httpx2.AsyncByteStream, response.stream), limit, packed),
            extensions=response.extensions,
        )


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


async def fetch(
    method: str,
    url: str,
    *,
    policy: Policy,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    types: Sequence[str] = (),
    timeout: float = 30.0,
    transport: OutboundTransport | None = None,
) -> httpx2.Response:
    """One request and its whole answer, at most `timeout` seconds in all; raises OutboundError.

    Follows redirects. Each is checked like a first address; another origin gets no header that we set and no body.
    `types` are the beginnings of content types that are accepted; none means all.
    """
    parsed = parse(url)
    try:
        async with asyncio.timeout(timeout), _client(policy, timeout, transport) as client:
            encoded = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
            request = client.build_request(method, parsed, headers=encoded, content=content)
            for _ in range(REDIRECTS + 1):
                response = await client.send(request, stream=True)
                try:
                    if response.next_request is None:
                        _check_type(response, types)
                        await response.aread()
                        return response
                    request = _redirected(request, response.next_request)
                finally:
                    await response.aclose()
    except OutboundError:
        raise
    except (TimeoutError, httpx2.TimeoutException):
        raise Unreachable(f"{parsed.host} did not answer within {timeout:g} s.") from None
    except httpx2.InvalidURL:
        raise Refused(f"{parsed.host} redirects to an invalid address.") from None
    except (httpx2.HTTPError, httpx2.StreamError) as error:
        raise Unreachable(f"{parsed.host}: {error or type(error).__name__}") from None
    raise Refused(f"{parsed.host} redirects more than {REDIRECTS} times.")


def _client(policy: Policy, timeout: float, transport: OutboundTransport | None) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=transport or OutboundTransport(policy),
        timeout=timeout,
        trust_env=False,
        headers={"User-Agent": "agentapp"},
    )


def _check_type(response: httpx2.Response, types: Sequence[str]) -> None:
    found = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if types and not any(found.startswith(kind) for kind in types):
        raise Refused(f"The answer is of type {found[:80] or 'unknown'!r}; expected is {' or '.join(types)}.")


def _redirected(before: httpx2.Request, after: httpx2.Request) -> httpx2.Request:
    parse(str(after.url))
    if origin(before.url) == origin(after.url):
        return after
    if before.url.scheme == "https" and after.url.scheme == "http":
        raise Refused(f"{before.url.host} redirects to an address without encryption.")
    if after.headers.get("content-length", "0") != "0" or "transfer-encoding" in after.headers:
        raise Refused(f"{before.url.host} redirects what was sent to {after.url.host}; it was not sent there.")
    kept = {name: value for name, value in after.headers.items() if name in _HARMLESS_HEADERS}
    return httpx2.Request(after.method, after.url, headers=kept, extensions=after.extensions)
