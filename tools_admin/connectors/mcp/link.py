"""One supervised connection to an MCP server: made on first use, shared by calls, made anew when it broke."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import mcp_types
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError

from tools_admin.connectors.base import ConnectorError
from tools_admin.connectors.mcp.catalogue import read_catalogue
from tools_admin.connectors.mcp.elicitation import elicited
from tools_admin.connectors.mcp.failures import explain_connecting
from tools_admin.connectors.mcp.http import Caller
from tools_admin.connectors.person import asking

T = TypeVar("T")
Transport = Callable[[], AbstractAsyncContextManager[Any]]

CONNECT_SECONDS = 20.0
CATALOGUE_SECONDS = 300.0  # a server need not say that its tools have changed
# A server that keeps breaking is left alone for a while, the second time for a second.
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
REQUEST_SECONDS = 30.0
IDLE_SECONDS = 300.0

# Each line of noise on a server's output would be a traceback in our log.
logging.getLogger("mcp").setLevel(logging.CRITICAL)


class Disconnected(ConnectorError):
    """There is no connection, or it broke."""


class Link:
    """Owned by a task of its own, because the SDK's client must be entered and left by the same one."""

    def __init__(
        self, transport: Transport, last_words: Callable[[], str] = str, *, caller: Caller | None = None
    ) -> None:
        self.caller = caller
        self._transport, self._last_words = transport, last_words
        self._connecting = asyncio.Lock()
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._calls: list[contextvars.Context] = []
        self._last_used = asyncio.get_running_loop().time()
        self._tools: list[mcp_types.Tool] | None = None
        self._is_stale, self._read_at, self._reading = False, 0.0, asyncio.Lock()
        self._failures, self._not_before = 0, 0.0

    async def use(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """`work` with the connected client; raises Disconnected, and what `work` raises."""
        client = await self._connected()
        context = contextvars.copy_context()
        self._calls.append(context)
        try:
            result = await work(client)
            self._failures = 0
            return result
        except MCPError as error:
            if error.error.code == mcp_types.CONNECTION_CLOSED or error.error.message == "Session terminated":
                if self._client is client:  # of several calls that end with it only one counts
                    self.close()
                    self._failed()
                raise Disconnected(self._told("The server ended the connection.")) from None
            raise
        finally:
            self._calls.remove(context)
            self._last_used = asyncio.get_running_loop().time()

    async def tools(self, client: Client, *, anew: bool = False) -> list[mcp_types.Tool]:
        """What the server offers; read again after it said that this has changed, and now and then."""
        self._is_stale |= anew
        async with self._reading:
            now = asyncio.get_running_loop().time()
            if self._tools is None or self._is_stale or now > self._read_at + CATALOGUE_SECONDS:
                self._is_stale = False
                self._tools = None
                self._tools, self._read_at = await read_catalogue(client), now
            return self._tools

    def close(self) -> None:
        """Ends the connection; the next use makes a new one."""
        self._client = None
        self._leave.set()

    async def closed(self) -> None:
        """Ends the connection and waits until nothing of it is left."""
        self.close()
        if self._owner is not None:
            await asyncio.wait([self._owner])

    @property
    def is_idle(self) -> bool:
        return not self._calls and asyncio.get_running_loop().time() > self._last_used + IDLE_SECONDS

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is not None:
                return self._client
            self._check_pause()
            if self._owner is not None:
                await asyncio.wait([self._owner])  # the server before may hold what the new one needs
            self._leave, self._tools = asyncio.Event(), None
            ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
            # A context of its own: whoever happens to come first is not the one whom the server's questions are for.
            opening = self._own(ready, self._leave)
            owner = self._owner = asyncio.create_task(opening, context=contextvars.Context())
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    self._client = await asyncio.shield(ready)
            except TimeoutError:
                owner.cancel()
                self._failed()
                raise Disconnected(self._told(f"The server did not answer within {CONNECT_SECONDS:g} s.")) from None
            except asyncio.CancelledError:
                owner.cancel()
                raise
            except ConnectorError:
                self._failed()
                raise
            return self._client

    def _failed(self) -> None:
        """The next attempt may be made at once, further ones after pauses that grow."""
        self._failures += 1
        pause = 0.0 if self._failures == 1 else min(PAUSE_SECONDS * 2 ** (self._failures - 2), LONGEST_PAUSE_SECONDS)
        self._not_before = asyncio.get_running_loop().time() + pause

    def _check_pause(self) -> None:
        left = self._not_before - asyncio.get_running_loop().time()
        if self._failures and left > 0:
            raise Disconnected(
                self._told(f"The server broke {self._failures} times; it is tried again in {left:.0f} s.")
            )

    async def _own(self, ready: asyncio.Future[Client], leave: asyncio.Event) -> None:
        client = Client(
            self._transport(),
            read_timeout_seconds=REQUEST_SECONDS,
            message_handler=self._hear,
            elicitation_callback=self._elicited,
            client_info=mcp_types.Implementation(name="agentapp", version="1"),
            cache=None,
        )
        try:
            async with client:
                if not ready.done():
                    ready.set_result(client)
                await leave.wait()
        except ConnectorError as error:
            _fail(ready, error)
        except asyncio.CancelledError:
            _fail(ready, Disconnected("The connection was given up."))
            raise
        except BaseException as error:  # noqa: BLE001 (the SDK raises groups of anything)
            _fail(ready, Disconnected(self._told(explain_connecting(error))))
        finally:
            if self._leave is leave:
                self._client = None

    async def _hear(self, message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._is_stale = True

    async def _elicited(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        """A question of the server. Older ones do not say for which call: with several going on nobody is asked."""
        if asking.get() is not None:
            return await elicited(params)
        if len(self._calls) != 1:
            return mcp_types.ErrorData(
                code=mcp_types.INVALID_REQUEST, message="Several calls are going on; ask when there is one."
            )
        return await asyncio.create_task(elicited(params), context=self._calls[0])

    def _told(self, text: str) -> str:
        words = self._last_words().strip()
        return f"{text} Its last words: {words}" if words else text


def _fail(ready: asyncio.Future[Client], error: Exception) -> None:
    if not ready.done():
        ready.set_exception(error)
        ready.exception()  # whoever waited may be gone
