"""The web server: Daphne, made to wait for clients that read slowly. `python -m agentapp.web [Daphne's options]`.

Daphne hands everything an application sends to the connection's buffer at once, however long that has become. Here
sending waits while the buffer is full, so that bounded queues in the application really fill.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from daphne import http_protocol
from daphne.cli import CommandLineInterface
from daphne.server import Server
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

OPTIONS = ("--websocket_timeout", "-1", "--no-server-name", "-v", "0")
CLOSING_SECONDS = 5.0  # for the closing handshake; then the connection is cut, whatever its buffer holds


@implementer(IPushProducer)
class Room:
    """Whether a connection's buffer takes more: the connection says so, writers wait for it."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.free.set()

    def pauseProducing(self) -> None:
        self.free.clear()

    def resumeProducing(self) -> None:
        self.free.set()

    def stopProducing(self) -> None:
        self.free.set()


class PlainRequest(http_protocol.WebRequest):  # type: ignore[misc]
    """Forms are Django's to read. Twisted would take them into memory too, and hang up without a word on those that it
    cannot read."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options, parsePOSTFormSubmission=False)


http_protocol.WebRequest = PlainRequest  # Daphne's factory has no other way in


class PatientServer(Server):  # type: ignore[misc]
    """`send()` of WebSockets and of streamed responses returns when there is room for more."""

    def protocol_connected(self, protocol: Any) -> None:
        super().protocol_connected(protocol)
        if isinstance(protocol, WebSocketProtocol):
            protocol.closeHandshakeTimeout = CLOSING_SECONDS

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        state = self.connections.get(protocol)
        if state is not None and not state.get("disconnected"):
            if message["type"] == "websocket.send":
                await self._room(state, protocol.transport)
            elif message["type"] == "http.response.body":
                await self._stream(state, protocol, more=bool(message.get("more_body")))
        await super().handle_reply(protocol, message)

    async def _stream(self, state: dict[str, Any], request: Any, *, more: bool) -> None:
        if more:
            await self._room(state, request)
        elif state.pop("room", None) is not None:
            request.unregisterProducer()  # the last part: whoever finishes a request may not still produce

    @staticmethod
    async def _room(state: dict[str, Any], consumer: Any) -> None:
        room = state.get("room")
        if room is None:
            state["room"] = room = Room()
            try:
                consumer.registerProducer(room, True)
            except RuntimeError:  # a WebSocket's connection still knows the HTTP request that it began as
                consumer.unregisterProducer()
                consumer.registerProducer(room, True)
        if not room.free.is_set():
            await room.free.wait()


class CommandLine(CommandLineInterface):  # type: ignore[misc]
    server_class = PatientServer


def main(arguments: Sequence[str]) -> None:
    CommandLine().run([*OPTIONS, *arguments, "agentapp.asgi:application"])


if __name__ == "__main__":
    main(sys.argv[1:])
