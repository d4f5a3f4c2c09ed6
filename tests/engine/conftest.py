"""Tools and helpers shared by the tests of the engine."""

import json

import pytest
from hypothesis import settings

from agentapp.engine import EffectClass, Tool, tool

# A busy machine is no failure, and every run tries the same examples, so that a red build has its cause in a change.
settings.register_profile("engine", deadline=None, database=None, derandomize=True)
settings.load_profile("engine")


@pytest.fixture
def add():
    @tool(effect_class=EffectClass.PURE)
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    return add


class CountingTool:
    """A tool that counts its bodies."""

    def __init__(self, name="echo", result="ok", **options):
        self.bodies = 0

        async def run(**arguments):
            self.bodies += 1
            if isinstance(result, Exception):
                raise result
            return result(**arguments) if callable(result) else result

        options.setdefault("effect_class", EffectClass.READ)
        self.tool = Tool(name, f"The tool {name}.", {"type": "object"}, run, **options)


@pytest.fixture
def counting():
    return CountingTool


def call_text(name, **arguments):
    """A tool call in the JSON dialect."""
    return json.dumps({"type": "tool_call", "reasoning": "needed", "tool_name": name, "tool_args": arguments})


def final_text(answer):
    return json.dumps({"type": "final_answer", "reasoning": "done", "answer": answer})
