"""A chat completions endpoint for `benchmarks.live`: streams tokens that say when they were sent.

`python -m benchmarks.live_model TOKENS SECONDS` sends each stream a token every SECONDS; prints its port.
Every token is an event and a chunk of its own.
"""

import asyncio
import sys
import time

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":500,"total_tokens":600}}\n\n'


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


END = chunk(EVENT % (b"{}", b'"stop"')) + chunk(USAGE) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


class Stream(asyncio.Protocol):
    tokens, seconds = 500, 0.005

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.pending = b""

    def data_received(self, data: bytes) -> None:
        self.pending += data
        head, end, body = self.pending.partition(b"\r\n\r\n")
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"")
        if not end or len(body) < int(length.partition(b":")[2]):
            return
        self.pending = b""
        if head.startswith(b"GET"):  # is anybody there?
            self.transport.write(b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"data":[]}')  # type: ignore[attr-defined]
            return
        self.transport.write(HEAD)  # type: ignore[attr-defined]
        self.token(self.tokens, asyncio.get_running_loop().time())

    def token(self, left: int, due: float) -> None:
        """One token, and the next one when it is due: a late one does not delay those after it."""
        if self.transport.is_closing():
            return
        if not left:
            self.transport.write(END)  # type: ignore[attr-defined]
            return
        self.transport.write(chunk(EVENT % (b'{"content":"%.4f "}' % time.time(), b"null")))  # type: ignore[attr-defined]
        asyncio.get_running_loop().call_at(due + self.seconds, self.token, left - 1, due + self.seconds)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Stream, "127.0.0.1", 0, backlog=1_000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    Stream.tokens, Stream.seconds = int(sys.argv[1]), float(sys.argv[2])
    asyncio.run(serve())
