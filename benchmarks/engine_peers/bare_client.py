"""A loop over the `openai` client's own `create()`, without agent, events or checks."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import openai

from .bare_http import PROMPT, TOOLS


def prepare(url: str, lookup: Callable[[int], str]) -> Callable[[int], Awaitable[None]]:
    client = openai.AsyncOpenAI(base_url=url, api_key="none")

    async def run(steps: int) -> None:
        messages: list[Any] = [PROMPT, {"role": "user", "content": f"Look up {steps} numbers."}]
        while True:
            reply = await client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
            message = reply.choices[0].message
            messages.append(message.to_dict())
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                assert call.type == "function"
                found = lookup(json.loads(call.function.arguments)["number"])
                messages.append({"role": "tool", "tool_call_id": call.id, "content": found})

    return run


def streams(url: str) -> dict[str, Callable[[int], Awaitable[int]]]:
    client = openai.AsyncOpenAI(base_url=url, api_key="none")

    async def adapter(words: int) -> int:
        messages: list[Any] = [{"role": "user", "content": f"Write {words} words."}]
        chunks = await client.chat.completions.create(model="m", messages=messages, stream=True)
        return sum([bool(chunk.choices[0].delta.content) async for chunk in chunks])

    return {"adapter": adapter}
