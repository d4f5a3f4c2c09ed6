"""A peer that means no good: what it does depends on the path. It keeps the head of every request."""

import asyncio
import contextlib
import gzip
import re
import ssl
import threading
from typing import Any

BOMB = gzip.compress(b"\0" * 60_000_000)


class HostileServer:
    """`with HostileServer() as server` listens on a loopback port, in a thread of its own."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[str] = []
        self.bodies: list[bytes] = []
        self.port = 0
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "HostileServer":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(self, *_: Any) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _listen(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
            self.bodies.append(await reader.readexactly(int(length.group(1))) if length else b"")
            self.requests.append(head)
            await self._answer(head.split()[1], writer)
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
            return
        except asyncio.CancelledError:
            if not self._loop.is_running():
                raise
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, path: str, writer: asyncio.StreamWriter) -> None:
        name, _, rest = path.lstrip("/").partition("?")
        if name.startswith("to"):  # /to307?http://…
            _reply(writer, int(name[2:] or 302), f"Location: {rest}")
        elif name == "loop":
            _reply(writer, 302, "Location: /loop")
        elif name == "bomb":
            _reply(writer, 200, f"Content-Encoding: gzip\r\nContent-Length: {len(BOMB)}", BOMB)
        elif name == "gzip":
            body = gzip.compress(b"un") + gzip.compress(b"packed")
            _reply(writer, 200, f"Content-Encoding: gzip\r\nContent-Length: {len(body)}", body)
        elif name == "half":
            body = gzip.compress(b"unpacked" * 100)[:-9]
            _reply(writer, 200, f"Content-Encoding: gzip\r\nContent-Length: {len(body)}", body)
        elif name == "brotli":
            _reply(writer, 200, "Content-Encoding: br\r\nContent-Length: 4", b"aaaa")
        elif name == "noise":
            _reply(writer, 200, "Content-Encoding: gzip\r\nContent-Length: 4", b"aaaa")
        elif name == "huge":
            _reply(writer, 200, "Content-Length: 99999999999")
        elif name == "endless":
            _reply(writer, 200, "Content-Type: text/plain")
            while True:
                writer.write(b"x" * 65_536)
                await writer.drain()
        elif name == "drip":
            _reply(writer, 200, "Content-Length: 1000")
            for _ in range(1000):
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.05)
        elif name == "silent":
            await asyncio.sleep(60)
        elif name == "headers":
            _reply(writer, 200, "\r\n".join(f"X-{n}: {'y' * 1000}" for n in range(300)))
        elif name == "nonsense":
            writer.write(b"\x00\x01 this is no HTTP\r\n\r\n")
        else:
            kind = "Content-Type: text/html\r\nSet-Cookie: session=1; Path=/\r\nContent-Length: 5"
            _reply(writer, 200, kind, b"hello")
        with contextlib.suppress(OSError):
            await writer.drain()


def _reply(writer: asyncio.StreamWriter, status: int, headers: str, body: bytes = b"") -> None:
    if status >= 300:
        headers += "\r\nContent-Length: 0"
    writer.write(f"HTTP/1.1 {status} X\r\n{headers}\r\nConnection: close\r\n\r\n".encode() + body)
