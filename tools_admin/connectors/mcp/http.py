"""Streamable HTTP through the one outbound client, signed in at the last moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from agentapp.outbound import OutboundTransport, Policy
from tools_admin.connectors.base import Setup

MAX_REPLY_BYTES = 20_000_000
MAX_EVENT_BYTES = 20_000_000
TIMEOUT = httpx2.Timeout(30.0, read=300.0)  # an event stream may be silent for long


class SignedIn(httpx2.AsyncBaseTransport):
    """Adds the credential to each request, fresh. Replies are bounded; the stream of events only event by event."""

    def __init__(self, newest: list[Setup]) -> None:
        setup = newest[0]
        self._newest = newest
        self._replies = OutboundTransport(Policy(setup.allowed_hosts, MAX_REPLY_BYTES))
        self._events = OutboundTransport(Policy(setup.allowed_hosts, None))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        signed = await self._newest[0].authorize(str(request.url), None)
        for name, value in signed.headers.items():
            request.headers[name] = value
        if signed.query:
            request.url = request.url.copy_merge_params(signed.query)
        if signed.cookies:
            request.headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in signed.cookies.items())
        transport = self._events if request.method == "GET" else self._replies
        return await transport.handle_async_request(request)

    async def aclose(self) -> None:
        await self._replies.aclose()
        await self._events.aclose()


@asynccontextmanager
async def http_transport(url: str, newest: list[Setup]) -> AsyncIterator[Any]:
    """`newest` holds the set-up of the latest call: credentials are renewed while a connection lives."""
    client = httpx2.AsyncClient(
        transport=SignedIn(newest), timeout=TIMEOUT, trust_env=False, headers={"User-Agent": "agentapp"}
    )
    async with client, streamable_http_client(url, http_client=client, max_sse_event_size=MAX_EVENT_BYTES) as streams:
        yield streams
