"""The demo agent without a database: the same messages, byte for byte, as in the product."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from agentapp.engine import Message, ModelError, OpenAIChatModel, ReActAgent
from tools_admin.connectors.builtin import builtin_tools
from tools_admin.demo.agent import MODEL, PRESET

if TYPE_CHECKING:
    from openai import AsyncOpenAI


def demo_agent(client: AsyncOpenAI, **options: Any) -> ReActAgent:
    """The agent on the demo model's endpoint; `options` go to `ReActAgent`."""
    values = dict(MODEL)
    model = OpenAIChatModel(
        client,
        "demo",
        context_size=values.pop("context_size"),
        max_output_tokens=values.pop("max_output_tokens"),
        extra=values.pop("extra_body"),
        abilities=values,
    )
    return ReActAgent(
        model,
        builtin_tools(),
        instructions=PRESET["instructions"],
        examples=[[Message(part["role"], part["content"]) for part in example] for example in PRESET["examples"]],
        stream_direct=True,
        **options,
    )


async def warm_up(base_url: str, key: str) -> None:
    """Asks one question. The server then has the long fixed part of the prompt read, and the first real question
    takes seconds instead of half a minute. When it fails nothing is lost but that."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0) as client:
        with contextlib.suppress(ModelError):
            await demo_agent(client).run("Good morning!")
