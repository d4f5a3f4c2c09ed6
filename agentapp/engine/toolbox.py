"""The tools of a run: chosen before it begins, more of them loaded on request."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .dialects import Dialect, JsonDialect, NativeDialect
from .events import phase
from .limits import Spent
from .messages import Content, Message, ToolCall, Usage
from .prompts import describe_tools
from .registry import ToolRegistry
from .scope import JournaledModel, Scope
from .selection import REQUEST_TOOLS, request_tools, select_tools
from .tool_batch import ToolBatch

if TYPE_CHECKING:
    from .react import ReActAgent


class Toolbox:
    """Keeps the registry, what the dialect offers of it, and what a batch may run, in step."""

    def __init__(self, agent: ReActAgent, loaded: ToolRegistry, scope: Scope, spent: Spent) -> None:
        self._everything = agent.registry
        self._most = most_tools(agent)
        self.registry = ToolRegistry(loaded)
        if len(loaded) < len(agent.registry):
            self.registry.register(request_tools(agent.registry, self.registry, self._room))
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
        chooser = JournaledModel(
            agent.model, root.child("select"), "selection", announcement, lambda: scope.has_passed(1)
        )
        loaded = await select_tools(
            chooser, query, agent.registry, threshold=agent.select_above, pinned=agent.pinned_tools
        )
        most = most_tools(agent)
        if most is not None and len(loaded) > most:
            # One place is for the tool that loads others.
            pinned = [name for name in loaded.names if name in agent.pinned_tools]
            others = [name for name in loaded.names if name not in agent.pinned_tools]
            loaded = loaded.subset([*pinned, *others][: most - 1])
        return cls(agent, loaded, scope, spent), chooser.usage

    async def run(
        self, iteration: int, calls: Sequence[ToolCall], refusals: Sequence[str | None]
    ) -> list[dict[str, Any]]:
        return await self._batch.run(iteration, calls, refusals)

    def _room(self) -> int:
        return sys.maxsize if self._most is None else self._most - len(self.registry)

    def load_requested(self, calls: Sequence[ToolCall], results: Sequence[dict[str, Any]]) -> list[Message]:
        """Loads what calls of `request_tools` asked for; returns what a dialect without definitions must be told."""
        added = []
        for call, result in zip(calls, results, strict=True):
            if call.name == REQUEST_TOOLS and not result["is_error"]:
                asked = dict.fromkeys(call.arguments["names"])
                wanted = [tool for name in asked if (tool := self._everything.get(name))]
                for tool in [tool for tool in wanted if self.registry.get(tool.name) is None][: self._room()]:
                    self.registry.register(tool)
                    added.append(tool)
        if not added:
            return []
        self.dialect.offer(self.registry)
        return (
            [Message.user(f"These tools are loaded now.\n{describe_tools(added)}")]
            if self.dialect.json_contract
            else []
        )


def most_tools(agent: ReActAgent) -> int | None:
    """How many function definitions the provider takes in one request, where that is limited."""
    return getattr(agent.model, "max_tools", None) if agent._native_mode_active else None
