"""The tools that one run has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .tools import Tool

CATALOG_CHARS = 80


class ToolRegistry:
    """The tools of one run, in a fixed order."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for item in tools:
            self.register(item)

    def register(self, item: Tool) -> None:
        if item.name in self._tools:
            raise ValueError(f"there is a tool named {item.name!r} already")
        self._tools[item.name] = item

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    @property
    def names(self) -> list[str]:
        return list(self._tools)

    def subset(self, names: Iterable[str]) -> ToolRegistry:
        wanted = set(names)
        return ToolRegistry(item for name, item in self._tools.items() if name in wanted)

    def catalog(self) -> str:
        """One line a tool, for choosing among many."""
        lines = []
        for item in self:
            description = " ".join(item.description.split())
            if len(description) > CATALOG_CHARS:
                description = description[: CATALOG_CHARS - 1] + "…"
            lines.append(f"{item.name}: {description}")
        return "\n".join(lines)

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())
