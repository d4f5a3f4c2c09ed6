"""A small OpenAI-compatible server under the test's control, on a loopback port."""

import asyncio
import json
from contextlib import asynccontextmanager


class FakeProvider:
    """Answers requests from a script of `Answer`s, in order; the last one is repeated."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []
        self.headers = []
        self.paths = []
        self.hung_up = asyncio.Event()
        self.connections = set()
        self.port = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, reader, writer):
        task = asyncio.current_task()
        self.connections.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.paths.append(head.split(b" ")[1].decode())
                headers = dict(line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:] if line)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append(json.loads(body or b"{}"))
                self.headers.append(headers)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                await answer(writer, reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.hung_up.set()
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()


def answer(status=200, body=b"", headers=None, content_type="application/json"):
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def send(writer, reader):
        extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(payload)}\r\n{extra}\r\n"
        writer.write(head.encode() + payload)
        await writer.drain()

    return send


def text_answer(text, **message):
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
    return answer(body={"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})


def stream_answer(lines, *, end="close", pieces=None):
    """A stream of lines. `end`: close it properly, cut the connection, or wait for the client to hang up."""
    data = "".join(line + "\n" for line in lines).encode()

    async def send(writer, reader):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        size = pieces or max(1, len(data))
        for start in range(0, len(data), size):
            part = data[start : start + size]
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        if end == "close":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        if end == "cut":
            writer.close()
        if end == "wait":
            await reader.readexactly(1)

    return send


@asynccontextmanager
async def serving(*answers):
    provider = FakeProvider(*answers)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.port = server.sockets[0].getsockname()[1]
    try:
        yield provider
    finally:
        server.close()
        for task in provider.connections:
            task.cancel()
