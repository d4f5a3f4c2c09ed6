"""What every kind of connector must do, whatever is behind it. Each kind's tests call this with a working one."""

import jsonschema
import pytest

from tools_admin.connectors.base import Connector, ToolError, ToolSpec, engine_tool


async def check_contract(connector: Connector) -> None:
    assert (await connector.check()).strip()

    specs = await connector.discover()
    names = [spec.name for spec in specs]
    assert names
    assert len(set(names)) == len(names)
    for spec in specs:
        assert spec.description.strip()
        assert spec.parameters["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(spec.parameters)
        assert spec.timeout > 0

    with pytest.raises(ToolError):
        await connector.call(ToolSpec("no_such_tool", "", {"type": "object"}), {})

    tool = engine_tool(connector.call, specs[0])
    assert (tool.name, tool.effect_class, tool.timeout) == (specs[0].name, specs[0].effect_class, specs[0].timeout)
