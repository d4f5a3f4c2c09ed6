"""Tools that fail on purpose. It happens at the door of the tool, and the loop knows nothing of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..delegation import AgentTool
from ..tool_batch import current_call_key
from ..tools import Tool, ToolResult
from .tasks import Fault

_WORDS = {
    "error": "ConnectionError: the service does not answer",
    "empty": "No evidence found.",
}


@dataclass(slots=True)
class FaultyTools:
    """The tools of one attempt. `first_key` is the position of the first call that was made to fail."""

    fault: Fault | None
    injected: int = 0
    first_key: str = ""
    overcome: bool = False  # the tool that failed has worked since

    def wrap(self, tools: Iterable[Tool]) -> list[Tool]:
        return [tool if isinstance(tool, AgentTool) else replace(tool, run=self._run_of(tool)) for tool in tools]

    def _run_of(self, tool: Tool) -> Any:
        fault = self.fault if self.fault is not None and self.fault.tool in ("", tool.name) else None

        async def run(**arguments: Any) -> ToolResult:
            if fault and (fault.times is None or self.injected < fault.times):
                self.injected += 1
                self.first_key = self.first_key or current_call_key() or ""
                return _faulty(fault, tool)
            result = await tool.execute(arguments)
            if fault and self.injected and not result.is_error:
                self.overcome = True
            return result

        return run


def _faulty(fault: Fault, tool: Tool) -> ToolResult:
    if fault.kind == "timeout":  # at once: waiting in vain tells nothing about a route
        return ToolResult(f"TimeoutError: no result after {tool.timeout:g} s", is_error=True)
    text = fault.text or _WORDS.get(fault.kind, "")
    return ToolResult(text, is_error=fault.kind == "error")
