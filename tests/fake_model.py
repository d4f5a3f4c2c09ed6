"""A local OpenAI-compatible server under the test's control: the only fake in the whole product's tests.

It answers like a model that uses tools, emits tokens at a set rate, records requests, and notices hang-ups.
Run it alone with `python -m tests.fake_model PORT`.
"""

import asyncio
import contextlib
import json
import re
import sys
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

# {"text": …}, {"calls": [{"name", "arguments"}]} or {"status": 401, "error": …}; `breaks_off`: after how many pieces
Reply = dict[str, Any]
Brain = Callable[[dict[str, Any]], Reply]


def think(request: dict[str, Any]) -> Reply:
    """Uses the calculator for "2 * 3", tells a long story when asked for one, else greets."""
    messages = request["messages"]
    last = messages[-1]
    text = last["content"] if isinstance(last["content"], str) else ""
    if last["role"] == "tool":
        return {"text": f"The result is {text.strip()}."}
    question = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
    names = {tool["function"]["name"] for tool in request.get("tools") or ()}
    if sum_ := re.search(r"\d+ *[*+/-] *\d+", question):
        if "calculator" in names:
            return {"calls": [{"name": "calculator", "arguments": {"expression": sum_.group()}}]}
        if not request.get("tools"):  # the answer phase: the trace is in the prompt
            return {"text": "The result is " + ", ".join(re.findall(r"\b\d{3,}\b", str(messages))[-1:]) + "."}
    if "unknown tool" in question and names:
        return {"calls": [{"name": "no_such_tool", "arguments": {}}]}
    if "story" in question:
        return {"text": " ".join(f"word{n}" for n in range(400))}
    return {"text": f"Hello! You wrote: {question[:200]}"}


ALIKE = {"lodging": "hotel", "accommodation": "hotel", "rooms": "hotel", "vacation": "holiday", "leave": "holiday"}
DIMENSIONS = 256


def vector_of(text: str) -> list[float]:
    """Words as places in a vector, those that mean the same in the same place."""
    vector = [0.01] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(ALIKE.get(word, word).encode()) % DIMENSIONS] += 1.0
    return vector


class FakeModel:
    """`start()` listens on a loopback port, in a thread of its own; `stop()` makes it unreachable."""

    def __init__(self, brain: Brain = think, port: int = 0) -> None:
        self.brain, self.port = brain, port
        self.token_delay = 0.0
        self.latency = 0.0
        self.requests: list[dict[str, Any]] = []
        self.hangups = 0
        self.embedded: list[dict[str, Any]] = []  # requests for vectors
        self.no_vectors = ""  # why there are none
        self.refused = 0
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> "FakeModel":
        if self._server is None:
            self._call(self._listen())
        return self

    def stop(self) -> None:
        self._call(self._close())

    def end(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server:
            self._server.close()
            for writer in list(self._open):
                writer.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:  # it came in while the server was being stopped
            writer.close()
            return
        self._open.add(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length.group(1))) if length else b"{}"
                if b"/embeddings " in head.partition(b"\r\n")[0]:
                    await self._embed(json.loads(body), writer)
                elif head.startswith(b"GET"):
                    await _send(writer, 200, {"object": "list", "data": [{"id": "fake-model", "object": "model"}]})
                else:
                    await self._answer(json.loads(body), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self._open.discard(writer)
            writer.close()

    async def _embed(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.embedded.append(request)
        if self.no_vectors:
            await _send(writer, 500, {"error": {"message": self.no_vectors}})
            return
        rows = [{"index": n, "embedding": vector_of(text)} for n, text in enumerate(request["input"])]
        usage = {"prompt_tokens": 10 * len(rows), "total_tokens": 10 * len(rows)}
        await _send(writer, 200, {"object": "list", "data": rows, "usage": usage})

    async def _answer(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.requests.append(request)
        if self.latency:
            await asyncio.sleep(self.latency)
        reply = self.brain(request)
        if "status" in reply:
            self.refused += 1
            await _send(writer, reply["status"], {"error": {"message": reply["error"], "code": "fake"}})
            return
        if request.get("stream"):
            await self._stream(reply, writer)
            return
        if self.token_delay:
            await asyncio.sleep(self.token_delay)
        body = {
            "id": "c",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": request["model"],
            "choices": [{"index": 0, "message": _message(reply, request), "finish_reason": _finish(reply)}],
            "usage": _usage(reply),
        }
        await _send(writer, 200, body)

    async def _stream(self, reply: Reply, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for place, delta in enumerate(_deltas(reply)):
                if place == reply.get("breaks_off"):
                    writer.close()
                    return
                _event(writer, {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
                await writer.drain()
                if self.token_delay:
                    await asyncio.sleep(self.token_delay)
                if writer.is_closing():
                    raise ConnectionResetError
            _event(writer, {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]})
            _event(writer, {"choices": [], "usage": _usage(reply)})
            _chunk(writer, b"data: [DONE]\n\n")
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        except ConnectionError:
            self.hangups += 1
            raise


async def _send(writer: asyncio.StreamWriter, status: int, body: dict[str, Any]) -> None:
    payload = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
    writer.write(head.encode() + payload)
    await writer.drain()


def _message(reply: Reply, request: dict[str, Any]) -> dict[str, Any]:
    if "calls" in reply:
        return {"role": "assistant", "content": None, "tool_calls": [_call(n, c) for n, c in enumerate(reply["calls"])]}
    if request.get("response_format"):
        text = json.dumps({"type": "final_answer", "reasoning": "", "answer": reply["text"]})
        return {"role": "assistant", "content": text}
    return {"role": "assistant", "content": reply["text"]}


def _deltas(reply: Reply) -> list[dict[str, Any]]:
    if "calls" in reply:
        return [{"tool_calls": [{"index": n, **_call(n, c)}]} for n, c in enumerate(reply["calls"])]
    return [{"content": piece} for piece in re.findall(r"\S+\s*", reply["text"])]


def _call(number: int, call: dict[str, Any]) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
    return {"id": f"call_{number}", "type": "function", "function": function}


def _finish(reply: Reply) -> str:
    return "tool_calls" if "calls" in reply else "stop"


def _usage(reply: Reply) -> dict[str, int]:
    words = len(reply.get("text", "").split()) or 12
    return {"prompt_tokens": 100, "completion_tokens": words, "total_tokens": 100 + words}


def _event(writer: asyncio.StreamWriter, data: dict[str, Any]) -> None:
    _chunk(writer, b"data: " + json.dumps(data).encode() + b"\n\n")


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


if __name__ == "__main__":
    server = FakeModel(port=int(sys.argv[1])).start()
    sys.stdout.write(server.url + "\n")
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
