"""langgraph's prebuilt ReAct agent with langchain-openai, streaming its updates."""

from collections.abc import Awaitable, Callable

from langchain_core.tools import tool  # type: ignore[import-not-found]
from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]
from langgraph.prebuilt import create_react_agent  # type: ignore[import-not-found]


def prepare(url: str, lookup: Callable[[int], str]) -> Callable[[int], Awaitable[None]]:
    @tool("lookup")  # type: ignore[untyped-decorator]
    async def look_up(number: int) -> str:
        """Looks up a number."""
        return lookup(number)

    agent = create_react_agent(ChatOpenAI(model="m", base_url=url, api_key="none"), [look_up])

    async def run(steps: int) -> None:
        question = {"messages": [("user", f"Look up {steps} numbers.")]}
        updates = agent.astream(question, {"recursion_limit": 2 * steps + 10}, stream_mode="updates")
        assert sum([1 async for _ in updates]) > steps

    return run
