"""What every kind of connector is: something that can be checked, lists its tools, and calls one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentapp.engine import EffectClass, Tool, ToolResult


class ConnectorError(Exception):
    """A connector cannot do its work: wrong settings, no connection, refused credential. The text is for admins."""


class ToolError(Exception):
    """One call failed in a way that a model can learn from: the text tells it what to do better."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as its connector describes it, before an admin has decided anything about it."""

    name: str
    description: str
    parameters: dict[str, Any]
    effect_class: EffectClass = EffectClass.ONCE
    needs_approval: bool = False
    timeout: float = 60.0
    max_result_chars: int = 50_000


class Connector(Protocol):
    """One configured source of tools. Its kind is its key in ``connectors.KINDS``."""

    async def check(self) -> str:
        """Say in one line what was found; raise `ConnectorError` when the source cannot be used."""

    async def discover(self) -> Sequence[ToolSpec]:
        """All tools the source offers now."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run a tool with arguments that its schema allows; raise `ToolError` for failures the model should see."""


def engine_tool(connector: Connector, spec: ToolSpec) -> Tool:
    """The engine's view of a connector's tool. An admin's decisions come in through the spec."""

    async def run(**arguments: Any) -> ToolResult:
        try:
            return await connector.call(spec.name, arguments)
        except (ToolError, ConnectorError) as error:
            return ToolResult(str(error), is_error=True)

    return Tool(
        spec.name,
        spec.description,
        spec.parameters,
        run,
        effect_class=spec.effect_class,
        needs_approval=spec.needs_approval,
        timeout=spec.timeout,
        max_result_chars=spec.max_result_chars,
    )
