"""The floor: the HTTP client that the `openai` client uses, a fast JSON library, and nothing else."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import orjson

PROMPT = {"role": "system", "content": "You are a helpful assistant. Use the tools to find what you do not know."}
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "lookup",
            "description": "Looks up a number.",
            "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
        },
    }
]


def client_for(url: str) -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=1_000, max_keepalive_connections=1_000)
    return httpx2.AsyncClient(base_url=url, timeout=600, limits=limits)


def prepare(url: str, lookup: Callable[[int], str]) -> Callable[[int], Awaitable[None]]:
    client = client_for(url)

    async def run(steps: int) -> None:
        messages: list[Any] = [PROMPT, {"role": "user", "content": f"Look up {steps} numbers."}]
        while True:
            body = orjson.dumps({"model": "m", "messages": messages, "tools": TOOLS})
            response = await client.post("chat/completions", content=body)
            message = orjson.loads(response.content)["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                return
            for call in message["tool_calls"]:
                found = lookup(orjson.loads(call["function"]["arguments"])["number"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": found})

    return run


def streams(url: str) -> dict[str, Callable[[int], Awaitable[int]]]:
    client = client_for(url)

    async def adapter(words: int) -> int:
        body = orjson.dumps({"model": "m", "stream": True, "messages": [{"content": f"Write {words} words."}]})
        seen = 0
        async with client.stream("POST", "chat/completions", content=body) as response:
            rest = b""
            async for data in response.aiter_bytes():
                *events, rest = (rest + data).split(b"\n\n")
                for event in events:
                    if event != b"data: [DONE]":
                        seen += bool(orjson.loads(event[5:])["choices"][0]["delta"].get("content"))
        return seen

    return {"adapter": adapter}
