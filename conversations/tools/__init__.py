"""Built-in tools that need the run they work in. `tools_admin.connectors.builtin.further` describes them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agentapp.engine import Artifact, ToolResult
from conversations.asking import Asking
from conversations.models import Run
from conversations.patience import patiently
from conversations.tools.files import kind_of_file
from conversations.tools.search import search


def run_tools(run: Run, asking: Asking) -> Mapping[str, Callable[..., Awaitable[Any]]]:
    """The tools of this run, by name."""

    async def search_conversations(words: str) -> str:
        return await patiently(search, run, words)

    async def make_file(filename: str, content: str) -> ToolResult:
        name, content_type = kind_of_file(filename)
        file = Artifact(name, content_type, content.encode(errors="replace"))
        return ToolResult(f"The user can download {name} now.", artifacts=[file])

    return {"ask_user": asking.ask_user, "search_conversations": search_conversations, "make_file": make_file}
