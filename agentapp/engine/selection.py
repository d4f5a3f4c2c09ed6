"""Choosing among many tools before the loop begins, and asking for more of them later."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from .errors import EngineError
from .journal import EffectClass, Journal
from .messages import Content, Message
from .models import ChatModel
from .registry import ToolRegistry
from .scope import JournaledModel, journaled
from .structured import structured_llm_call
from .tools import Tool

TOOL_SELECTION_THRESHOLD = 12
TOOL_SELECTION_MAX = 6
REQUEST_TOOLS = "request_tools"

_SCHEMA = {
    "type": "object",
    "properties": {"tools": {"type": "array", "items": {"type": "string"}}},
    "required": ["tools"],
}
_TASK = (
    "Choose the tools that the request needs, the most useful first, at most {maximum}. Names must be those of the "
    "list; more can be loaded later."
)


async def select_tools(
    model: ChatModel,
    query: Content,
    registry: ToolRegistry,
    *,
    threshold: int = TOOL_SELECTION_THRESHOLD,
    maximum: int = TOOL_SELECTION_MAX,
    pinned: Collection[str] = (),
    journal: Journal | None = None,
    scope: str = "",
) -> ToolRegistry:
    """The tools that fit the query, and the pinned ones in any case. All of them when there are few, or when choosing
    fails in any way: it is never fatal."""
    if len(registry) <= threshold:
        return registry
    bound = model if isinstance(model, JournaledModel) else journaled(model, journal, scope, "selection")
    ask = f"Tools:\n{registry.catalog()}\n\nRequest:\n{Message.user(query).text}"
    messages = [Message.system(_TASK.format(maximum=maximum)), Message.user(ask)]
    try:
        result = await structured_llm_call(
            bound, messages, _SCHEMA, function_name="choose_tools", parse_fn=_names, default_value=()
        )
    except EngineError:  # not the model's: a replay that does not match, a script that is too short
        raise
    except Exception:  # noqa: BLE001 (whatever a model does here, the run goes on with all tools)
        return registry
    chosen = [name for name in result.value[:maximum] if registry.get(name) is not None]
    return registry.subset([*chosen, *pinned]) if chosen else registry


def _names(data: dict[str, Any]) -> Sequence[str] | None:
    names = data["tools"]
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else None


def request_tools(everything: ToolRegistry, loaded: ToolRegistry, room: Callable[[], int]) -> Tool:
    """A tool that loads others which selection left out, as long as there is `room` for them.

    It can name no tool outside `everything`, and not itself.
    """

    async def run(names: list[str]) -> str:
        known = [name for name in dict.fromkeys(names) if everything.get(name)]
        wanted = [name for name in known if not loaded.get(name)]
        groups = {
            "loaded": wanted[: room()],
            "already loaded": [name for name in known if loaded.get(name)],
            "not loaded, there is no room for more": wanted[room() :],
            "not found": [name for name in dict.fromkeys(names) if not everything.get(name)],
        }
        return "; ".join(f"{label}: {', '.join(found)}" for label, found in groups.items() if found)

    left_out = ToolRegistry(tool for tool in everything if not loaded.get(tool.name))
    parameters = {
        "type": "object",
        "properties": {"names": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
        "required": ["names"],
        "additionalProperties": False,
    }
    text = f"Loads more tools for the next step. Tools that can be loaded:\n{left_out.catalog()}"
    return Tool(REQUEST_TOOLS, text, parameters, run, effect_class=EffectClass.PURE)
