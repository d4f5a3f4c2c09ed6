"""A chat completions endpoint that is never the bottleneck: it looks for three marks in a request and parses nothing.

"Look up 20 numbers" gets a call of `lookup` until 20 results are there, then an answer; "Write 500 words" in a
streamed request gets 500 tokens, each an event and an HTTP chunk of its own. Prints its port.
`python -m benchmarks.engine_peers.endpoint SECONDS` answers that long after a request came in.
"""

import asyncio
import json
import re
import sys
from typing import Any

STEPS = re.compile(rb"Look up (\d+) numbers")
WORDS = re.compile(rb"Write (\d+) words")
# Long enough that nobody takes it for an answer in need of a second look.
ANSWER = "These are the numbers that were asked for, each with what was found about it. " * 12
USAGE = {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}


def completion(message: dict[str, Any], finish_reason: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason, "logprobs": None}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
    payload = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(payload) + payload


def tool_call(number: int) -> bytes:
    function = {"name": "lookup", "arguments": json.dumps({"number": number})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return completion({"content": None, "tool_calls": [call]}, "tool_calls")


def event(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return chunk(b"data: " + json.dumps(body).encode() + b"\n\n")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


CALLS = [tool_call(number) for number in range(100)]
FINAL = completion({"content": ANSWER}, "stop")
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAM_END = event({}, "stop") + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def answer(body: bytes) -> bytes:
    if words := WORDS.search(body):
        return STREAM_HEAD + b"".join(event({"content": f"word{n} "}) for n in range(int(words[1]))) + STREAM_END
    steps = STEPS.search(body)
    done = body.count(b'"tool_call_id"')
    return FINAL if steps is None or done >= int(steps[1]) else CALLS[done]


class Endpoint(asyncio.Protocol):
    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.pending = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.pending += data
        head, end, body = self.pending.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE) if end else None
        if length is None or len(body) < int(length[1]):
            return
        self.pending = b""
        reply = answer(body)
        if self.latency:
            asyncio.get_running_loop().call_later(self.latency, self.transport.write, reply)
        else:
            self.transport.write(reply)


async def serve(latency: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Endpoint(latency), "127.0.0.1", 0, backlog=1_000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
