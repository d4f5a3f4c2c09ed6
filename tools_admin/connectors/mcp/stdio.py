"""A server that the operator allows by name, as a child process: bounded, without our secrets, gone when we are.

The SDK's own transport joins lines of any length in memory; this one gives up on a server that writes such.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import cast

import anyio
import mcp_types
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from tools_admin.connectors.base import ConnectorError

MAX_LINE_BYTES = 20_000_000
STDERR_LINES = 20
SECONDS_TO_LEAVE = 2.0

_CHILD = Path(__file__).with_name("child.py")


class StdioServer:
    """What the operator's command says: lines of JSON on its output, the last words of its errors for people."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._said: deque[str] = deque(maxlen=STDERR_LINES)

    @property
    def last_words(self) -> str:
        return "\n".join(self._said)[-2_000:]

    @contextlib.asynccontextmanager
    async def transport(
        self,
    ) -> AsyncIterator[
        tuple[
            anyio.abc.ObjectReceiveStream[SessionMessage | Exception],
            anyio.abc.ObjectSendStream[SessionMessage],
        ]
    ]:
        """Starts the process; it has ended when this is left, with everything that it started itself."""
        process = await self._start()
        incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](16)
        write, outgoing = anyio.create_memory_object_stream[SessionMessage](16)
        pumps = [
            asyncio.create_task(_read(process, incoming)),
            asyncio.create_task(_write(process, outgoing, incoming)),
            asyncio.create_task(self._listen(process)),
        ]
        try:
            yield read, write
        finally:
            await asyncio.shield(asyncio.ensure_future(_end(process, pumps)))
            for stream in (incoming, read, write, outgoing):
                stream.close()

    async def _start(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", str(_CHILD), str(os.getpid()), *self._command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=get_default_environment(),
                cwd="/",
                limit=MAX_LINE_BYTES,
                start_new_session=True,
            )
        except OSError as error:
            raise ConnectorError(f"The server cannot be started: {error}") from None

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        output = cast(asyncio.StreamReader, process.stderr)
        while True:
            try:
                line = await output.readline()
            except ValueError:  # longer than the limit; the rest of it comes next
                continue
            if not line:
                return
            self._said.append(line.decode(errors="replace").rstrip()[:500])


async def _read(
    process: asyncio.subprocess.Process, incoming: anyio.abc.ObjectSendStream[SessionMessage | Exception]
) -> None:
    """Messages of the server; lines that are none are noise, which is common. An endless line ends the connection."""
    output = cast(asyncio.StreamReader, process.stdout)
    async with incoming:
        while True:
            try:
                line = await output.readline()
            except ValueError:
                return
            if not line:
                return
            try:
                message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                continue
            try:
                await incoming.send(SessionMessage(message))
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return


async def _write(
    process: asyncio.subprocess.Process,
    outgoing: anyio.abc.ObjectReceiveStream[SessionMessage],
    incoming: anyio.abc.ObjectSendStream[SessionMessage | Exception],
) -> None:
    server = cast(asyncio.StreamWriter, process.stdin)
    try:
        async for item in outgoing:
            server.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await server.drain()
    except (OSError, anyio.ClosedResourceError):
        await incoming.aclose()  # whoever waits for an answer learns that none will come


async def _end(process: asyncio.subprocess.Process, pumps: list[asyncio.Task[None]]) -> None:
    """Closing its input asks the server to leave; then its whole group is killed, whatever it started."""
    with contextlib.suppress(OSError):
        cast(asyncio.StreamWriter, process.stdin).close()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), SECONDS_TO_LEAVE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pump in pumps:
        pump.cancel()
    await asyncio.gather(*pumps, return_exceptions=True)
    # `wait` waits for the pipes too, and those that nobody reads to their end stay open; there is no public way.
    process._transport.close()  # type: ignore[attr-defined]
    await process.wait()
