"""What the engine expects of a language model, and which model plays which role."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Protocol

from .messages import Chunk, Completion, Message

ToolDefinitions = Sequence[dict[str, Any]]


class ChatModel(Protocol):
    """A chat model. `abilities`: tool_call, json_mode, json_schema, vision, streaming; missing means False.

    Two more abilities are understood: `tool_choice: False` for models that take tools but no forced choice, and
    `small: True` for models that need worked examples, a schema for every reply and a single tool step.
    """

    @property
    def name(self) -> str: ...
    @property
    def abilities(self) -> Mapping[str, bool]: ...
    @property
    def context_size(self) -> int: ...
    @property
    def max_output_tokens(self) -> int: ...

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> Completion:
        """One whole reply; raises a `ModelError`."""
        ...

    def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> AsyncIterator[Chunk]:
        """The reply in pieces; the last one carries the whole message. Raises a `ModelError`."""
        ...


class ModelRegistry:
    """Models by role."""

    def __init__(self) -> None:
        self._by_role: dict[str, ChatModel] = {}

    def register(self, model: ChatModel, roles: Iterable[str] = ("general",)) -> None:
        for role in roles:
            self._by_role[role] = model

    def get(self, role: str) -> ChatModel:
        try:
            return self._by_role[role]
        except KeyError:
            raise KeyError(f"no model for role {role!r}; known roles: {', '.join(self._by_role) or 'none'}") from None

    @property
    def default(self) -> ChatModel:
        """The model for `general`, or else the first one registered."""
        if "general" in self._by_role:
            return self._by_role["general"]
        return self.get(next(iter(self._by_role), "general"))
