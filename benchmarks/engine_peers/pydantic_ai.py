"""pydantic-ai, node by node, which is how it tells of its steps."""

from collections.abc import Awaitable, Callable

from pydantic_ai import Agent, UsageLimits  # type: ignore[import-not-found]
from pydantic_ai.models.openai import OpenAIChatModel  # type: ignore[import-not-found]
from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found]


def prepare(url: str, lookup: Callable[[int], str]) -> Callable[[int], Awaitable[None]]:
    agent = Agent(OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="none")))

    @agent.tool_plain(name="lookup")  # type: ignore[untyped-decorator]
    async def look_up(number: int) -> str:
        """Looks up a number."""
        return lookup(number)

    async def run(steps: int) -> None:
        limits = UsageLimits(request_limit=None)
        async with agent.iter(f"Look up {steps} numbers.", usage_limits=limits) as nodes:
            assert sum([1 async for _ in nodes]) > steps

    return run
