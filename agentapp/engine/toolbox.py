"""The tools of a run: chosen before it begins, more of them loaded on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .dialects import Dialect, JsonDialect, NativeDialect
from .events import phase
from .limits import Spent
from .messages import Content, Message, ToolCall, Usage
from .prompts import describe_tools
from .scope import JournaledModel, Scope
from .selection import REQUEST_TOOLS, request_tools, select_tools
from .tool_batch import ToolBatch
from .tools import ToolRegistry

if TYPE_CHECKING:
    from .react import ReActAgent


class Toolbox:
    """Keeps the registry, what the dialect offers of it, and what a batch may run, in step."""

    def __init__(self, agent: ReActAgent, loaded: ToolRegistry, scope: Scope, spent: Spent) -> None:
        self._everything = agent.registry
        self.registry = loaded
        if len(loaded) < len(agent.registry):
            self.registry = ToolRegistry([*loaded, request_tools(agent.registry, loaded)])
        model = agent.model
        self.dialect: Dialect = (
            NativeDialect(self.registry, model.max_output_tokens)
            if agent._native_mode_active
            else JsonDialect(self.registry, model.abilities)
        )
        self._batch = ToolBatch(self.registry, agent.gate, scope, spent, agent.time)

    @classmethod
    async def choose(
        cls, agent: ReActAgent, query: Content, root: Scope, scope: Scope, spent: Spent
    ) -> tuple[Toolbox, Usage]:
        """All tools, or with many of them those that a model chooses for the query."""
        announcement = phase("selecting_tools", total_tools=len(agent.registry))
        chooser = JournaledModel(agent.model, root.child("select"), "selection", announcement)
        loaded = await select_tools(chooser, query, agent.registry, threshold=agent.select_above)
        return cls(agent, loaded, scope, spent), chooser.usage

    async def run(
        self, iteration: int, calls: Sequence[ToolCall], refusals: Sequence[str | None]
    ) -> list[dict[str, Any]]:
        return await self._batch.run(iteration, calls, refusals)

    def load_requested(self, calls: Sequence[ToolCall], results: Sequence[dict[str, Any]]) -> list[Message]:
        """Loads what calls of `request_tools` asked for; returns what a dialect without definitions must be told."""
        added = []
        for call, result in zip(calls, results, strict=True):
            if call.name == REQUEST_TOOLS and not result["is_error"]:
                wanted = self._everything.subset(call.arguments["names"])
                added += [tool for tool in wanted if self.registry.get(tool.name) is None]
                for tool in added:
                    if self.registry.get(tool.name) is None:
                        self.registry.register(tool)
        if not added:
            return []
        self.dialect.offer(self.registry)
        return (
            [Message.user(f"These tools are loaded now.\n{describe_tools(added)}")]
            if self.dialect.json_contract
            else []
        )
