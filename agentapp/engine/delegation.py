"""An agent as a tool of another one.

A delegation is no effect of its own: everything the child does is recorded in the parent's journal, under a longer
key. So a child that waits for a person takes its parent with it, and both go on where they were.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import IncompleteStream, ModelError, ModelUnavailable
from .interrupts import InterruptQueue
from .journal import EffectClass
from .limits import Spent
from .scope import Scope
from .tools import Tool, cut_text, error_result

if TYPE_CHECKING:
    from .agent import Agent
    from .tool_batch import Gate

# An agent that may call itself would go on for ever.
MAX_DEPTH = 4
_PARAMETERS = {
    "type": "object",
    "properties": {
        "request": {
            "type": "string",
            "minLength": 1,
            "description": "The whole task with all that is needed for it: nothing else is passed on.",
        }
    },
    "required": ["request"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class AgentTool(Tool):
    """A tool whose calls another agent works on. Called on its own, `run` is a run of that agent."""

    agent: Agent = field(kw_only=True)


def agent_tool(agent: Agent, name: str, description: str) -> AgentTool:
    async def run(request: str) -> str:
        return (await agent.run(request)).answer

    return AgentTool(name, description, _PARAMETERS, run, effect_class=EffectClass.PURE, agent=agent)


async def delegate(tool: AgentTool, request: str, scope: Scope, gate: Gate | None, spent: Spent) -> dict[str, Any]:
    """Runs the child in `scope` to its end; its answer, and what it used, in the form in which a result is recorded.

    A model that is out of reach for now leaves, as it would leave the parent; any other model error is news for it.
    """
    if scope.prefix.count("/agent") > MAX_DEPTH:
        return error_result("not run: agents may not delegate any deeper, so do this part of the work yourself")
    child = copy.copy(tool.agent)
    child.gate, child.limits, child.stream_direct = gate, spent.limits, False
    begun = spent.seconds
    try:
        done = await child._work(request, (), scope, InterruptQueue(), spent)
    except (ModelUnavailable, IncompleteStream):
        raise
    except ModelError as error:
        answer, failed = f"{type(error).__name__}: {error}", True
    else:
        answer = done.answer
        failed = done.stop_reason != "final_answer" and not done.stop_reason.startswith("limit:")
    return {
        **error_result(cut_text(answer, tool.max_result_chars)),
        "is_error": failed,
        "elapsed": round(spent.seconds - begun, 6),
        "spent": {"usage": spent.usage.to_dict(), "cost": spent.cost, "tool_calls": spent.tool_calls},
    }
