"""openai-agents over chat completions, with its hooks and without its tracing, which would send traces away."""

from collections.abc import Awaitable, Callable
from typing import Any

import openai
from agents import (  # type: ignore[import-not-found]
    Agent,
    OpenAIChatCompletionsModel,
    RunHooks,
    Runner,
    function_tool,
    set_tracing_disabled,
)


class Listener(RunHooks):  # type: ignore[misc]
    def __init__(self) -> None:
        self.seen = 0

    async def on_llm_start(self, *_: Any, **__: Any) -> None:
        self.seen += 1

    on_llm_end = on_tool_start = on_tool_end = on_llm_start


def prepare(url: str, lookup: Callable[[int], str]) -> Callable[[int], Awaitable[None]]:
    set_tracing_disabled(True)

    @function_tool(name_override="lookup")  # type: ignore[untyped-decorator]
    async def look_up(number: int) -> str:
        """Looks up a number."""
        return lookup(number)

    model = OpenAIChatCompletionsModel(model="m", openai_client=openai.AsyncOpenAI(base_url=url, api_key="none"))
    agent = Agent(name="assistant", model=model, tools=[look_up])

    async def run(steps: int) -> None:
        listener = Listener()
        await Runner.run(agent, f"Look up {steps} numbers.", max_turns=steps + 5, hooks=listener)
        assert listener.seen >= 4 * steps

    return run
