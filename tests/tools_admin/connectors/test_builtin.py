import subprocess
import sys
from pathlib import Path

import pytest

from agentapp.engine import EffectClass, ReActAgent, ScriptedChatModel, ToolCall
from tools_admin.connectors.base import Setup, ToolError, ToolSpec
from tools_admin.connectors.builtin import BuiltinConnector, builtin_tools

from .contract import check_contract


async def test_the_connector_keeps_the_contract():
    await check_contract(BuiltinConnector(Setup()))


def test_no_builtin_tool_changes_anything():
    classes = {tool.name: tool.effect_class for tool in builtin_tools()}
    assert classes == {
        "calculator": EffectClass.PURE,
        "current_time": EffectClass.READ,
        "query_demo_database": EffectClass.READ,
    }


def test_schemas_look_the_same_after_the_database():
    def in_order(value: object) -> bool:
        if not isinstance(value, dict):
            return True
        return list(value) == sorted(value, key=lambda key: (len(key), key)) and all(map(in_order, value.values()))

    assert all(in_order(tool.parameters) for tool in builtin_tools())


async def test_an_unknown_tool_names_the_known_ones():
    with pytest.raises(ToolError, match="calculator, current_time, query_demo_database"):
        await BuiltinConnector(Setup()).call(ToolSpec("shell", "", {}), {})


async def test_an_agent_uses_them():
    calls = [
        ToolCall("1", "calculator", {"expression": "6 * 7"}),
        ToolCall("2", "query_demo_database", {"sql": "SELECT count(*) AS products FROM products"}),
        ToolCall("3", "current_time", {"place": "Atlantis"}),
        ToolCall("4", "calculator", {"formula": "1 + 1"}),
    ]
    model = ScriptedChatModel([calls, "done"])
    result = await ReActAgent(model, builtin_tools()).run("q")
    product, rows, nowhere, wrong = result.tool_steps
    assert (product.observation, rows.observation) == ("6 * 7 = 42", "products\n20")
    assert nowhere.error is not None and nowhere.error.startswith("No time zone is known for 'Atlantis'")
    assert wrong.error is not None and "expression" in wrong.error


def test_heavy_libraries_wait_for_the_first_call():
    code = (
        "import sys; from tools_admin.connectors.builtin import builtin_tools; builtin_tools();"
        "print([name for name in ('simpleeval', 'sqlite3', 'django') if name in sys.modules])"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
