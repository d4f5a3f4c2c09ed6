"""agentapp.engine, with its events."""

from collections.abc import Awaitable, Callable
from typing import Any

import openai

from agentapp.engine import (
    AgentResult,
    EffectClass,
    Event,
    Message,
    OpenAIChatModel,
    ReActAgent,
    Tool,
    Usage,
    tool,
)

ABILITIES = {"tool_call": True, "streaming": True}


class Listener:
    """Takes the events of a run, as an application would."""

    def __init__(self) -> None:
        self.seen = 0

    async def __call__(self, event: Event) -> None:
        self.seen += 1


def model_at(url: str) -> OpenAIChatModel:
    return OpenAIChatModel(openai.AsyncOpenAI(base_url=url, api_key="none"), "m", abilities=ABILITIES)


def tool_of(lookup: Callable[[int], str]) -> Tool:
    @tool(name="lookup", effect_class=EffectClass.READ)
    async def look_up(number: int) -> str:
        """Looks up a number."""
        return lookup(number)

    return look_up


def prepare(url: str, lookup: Callable[[int], str]) -> Callable[[int], Awaitable[None]]:
    model, look_up = model_at(url), tool_of(lookup)

    async def run(steps: int) -> None:
        listener = Listener()
        agent = ReActAgent(model, [look_up], emit=listener)
        result = await agent.run(f"Look up {steps} numbers.")
        assert result.stop_reason == "final_answer", result
        assert listener.seen >= 4 * steps

    return run


def streams(url: str) -> dict[str, Callable[[int], Awaitable[int]]]:
    model = model_at(url)

    async def adapter(words: int) -> int:
        chunks = model.stream_chat([Message.user(f"Write {words} words.")])
        return sum([bool(chunk.content) async for chunk in chunks])

    async def answer(words: int) -> int:
        """The synthesis of an agent: the stream, its events, the journal."""
        listener = Listener()
        found: dict[str, Any] = {"steps": [], "iterations": 1, "usage": Usage(), "messages": []}
        result = AgentResult("", stop_reason="final_answer", **found)
        agent = ReActAgent(model, emit=listener)
        text = "".join([piece async for piece in agent.stream_answer(f"Write {words} words.", result)])
        assert listener.seen >= 3
        return len(text.split())

    return {"adapter": adapter, "answer": answer}
