"""Streamable HTTP through the one outbound client, signed in at the last moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from agentapp.outbound import OutboundTransport, Policy
from tools_admin.connectors.base import Authorization, Setup

MAX_REPLY_BYTES = 20_000_000
MAX_EVENT_BYTES = 20_000_000
TIMEOUT = httpx2.Timeout(30.0, read=300.0)  # an event stream may be silent for long


@dataclass(slots=True)
class Caller:
    """Whom a connection works for: the set-up of the latest call, as credentials are renewed while it lives; and with
    which status the server refused the last request, if it did."""

    setup: Setup
    refusal: int = 0


class SignedIn(httpx2.AsyncBaseTransport):
    """Adds the credential to each request, fresh. Replies are bounded; the stream of events only event by event."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._replies = OutboundTransport(Policy(caller.setup.allowed_hosts, MAX_REPLY_BYTES))
        self._events = OutboundTransport(Policy(caller.setup.allowed_hosts, None))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = str(request.url)
        response, signed = await self._send(request, url)
        if response.status_code == 401 and signed.secrets and await self._caller.setup.refused(signed):
            await response.aclose()
            response, signed = await self._send(request, url)
        if response.status_code in (401, 403):
            self._caller.refusal = response.status_code
        return response

    async def _send(self, request: httpx2.Request, url: str) -> tuple[httpx2.Response, Authorization]:
        signed = await self._caller.setup.authorize(url, None)
        for name, value in signed.headers.items():
            request.headers[name] = value
        if signed.query:
            request.url = httpx2.URL(url).copy_merge_params(signed.query)
        if signed.cookies:
            request.headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in signed.cookies.items())
        transport = self._events if request.method == "GET" else self._replies
        return await transport.handle_async_request(request), signed

    async def aclose(self) -> None:
        await self._replies.aclose()
        await self._events.aclose()


@asynccontextmanager
async def http_transport(url: str, caller: Caller) -> AsyncIterator[Any]:
    client = httpx2.AsyncClient(
        transport=SignedIn(caller), timeout=TIMEOUT, trust_env=False, headers={"User-Agent": "agentapp"}
    )
    async with client, streamable_http_client(url, http_client=client, max_sse_event_size=MAX_EVENT_BYTES) as streams:
        yield streams
