from collections.abc import Mapping, Sequence
from typing import Any

from agentapp.engine import EffectClass, ToolResult
from tools_admin.connectors.base import ConnectorError, ToolError, ToolSpec, engine_tool

SPEC = ToolSpec("act", "Acts.", {"type": "object"}, EffectClass.IDEMPOTENT, True, 7.0, 90)


class Failing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def check(self) -> str:
        raise self.error

    async def discover(self) -> Sequence[ToolSpec]:
        return [SPEC]

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolResult:
        raise self.error


async def test_failures_meant_for_the_model_are_results_in_its_words():
    for error in (ToolError("Give a city."), ConnectorError("The server does not answer.")):
        result = await engine_tool(Failing(error).call, SPEC).execute({})
        assert (result.content, result.is_error) == (str(error), True)


async def test_other_failures_name_their_type():
    result = await engine_tool(Failing(KeyError("x")).call, SPEC).execute({})
    assert (result.content, result.is_error) == ("KeyError: 'x'", True)


def test_an_administrators_decisions_reach_the_engine():
    tool = engine_tool(Failing(ToolError()).call, SPEC)
    assert (tool.effect_class, tool.needs_approval) == (EffectClass.IDEMPOTENT, True)
    assert (tool.timeout, tool.max_result_chars) == (7.0, 90)
