"""Many operations behind two tools: cheap to offer, found by words, and permitted one by one."""

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from agentapp.engine import Allow, EffectClass, Tool
from tools_admin.compact import CatalogTool, ExecuteTool, addressed, compact, readdressed
from tools_admin.models import Connector
from tools_admin.models import Tool as ToolRow
from tools_admin.toolbox import MOST_SHOWN, engine_tools

done: list[tuple[str, Any]] = []


def operation(name: str, **values: Any) -> tuple[Tool, ToolRow]:
    async def run(**arguments: Any) -> str:
        done.append((name, arguments))
        return f"{name} ran"

    parameters = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
    tool = Tool(name, f"Does what {name} says.", parameters, run, effect_class=EffectClass.ONCE, **values)
    return tool, ToolRow(name=name)


@pytest.fixture
def both() -> list[Tool]:
    done.clear()
    names = [
        f"shop_{verb}_{thing}" for verb in ("list", "get", "delete", "update") for thing in ("orders", "customers")
    ]
    return compact(Connector(pk=7, name="Shop", prefix="shop"), [operation(name) for name in names])


def test_five_hundred_operations_cost_less_than_300_tokens() -> None:
    tools = compact(Connector(pk=7, name="Shop", prefix="shop"), [operation(f"shop_op_{n}") for n in range(500)])
    prompt = json.dumps([tool.definition for tool in tools])
    assert len(tools) == 2
    assert len(prompt) / 3 < 300, "even at three characters a token"


def test_an_operation_is_found_by_words_with_its_schema(both: list[Tool]) -> None:
    discover, _ = both
    found = async_to_sync(discover.execute)({"query": "delete an order"}).content
    assert found.startswith("shop_delete_orders: Does what")
    assert '"required": ["id"]' in found.splitlines()[1]
    nothing = async_to_sync(discover.execute)({"query": "weather"}).content
    assert nothing.startswith("Nothing matches. Operations: shop_list_orders")


def test_an_operation_runs_with_arguments_that_fit_it(both: list[Tool]) -> None:
    _, execute = both
    result = async_to_sync(execute.execute)({"operation": "shop_get_orders", "arguments": {"id": 5}})
    assert (result.content, done) == ("shop_get_orders ran", [("shop_get_orders", {"id": 5})])
    wrong = async_to_sync(execute.execute)({"operation": "shop_get_orders", "arguments": {"id": "x"}})
    assert wrong.is_error and "integer" in wrong.content and "Its schema" in wrong.content
    unknown = async_to_sync(execute.execute)({"operation": "shop_get_order"})
    assert unknown.is_error and "shop_get_orders" in unknown.content
    assert len(done) == 1


def test_permission_and_approval_concern_the_operation(both: list[Tool]) -> None:
    discover, execute = both
    assert isinstance(discover, CatalogTool) and isinstance(execute, ExecuteTool)
    given = {"operation": "shop_delete_orders", "arguments": {"id": 5}}
    assert addressed(execute, given) == ("shop_delete_orders", {"id": 5})
    assert addressed(execute, {"operation": "calculator"}) == ("calculator", {}), "which is refused as unknown"
    edited = readdressed(execute, "shop_delete_orders", Allow({"id": 6}))
    assert edited == Allow({"operation": "shop_delete_orders", "arguments": {"id": 6}})
    assert execute.argument_error(edited.arguments) is None
    tool, _ = operation("plain")
    assert addressed(tool, {"id": 1}) == ("plain", {"id": 1})
    assert readdressed(tool, "plain", Allow({"id": 2})) == Allow({"id": 2})


@pytest.mark.django_db
def test_only_large_connectors_are_made_compact_and_chosen_tools_stay_in_front() -> None:
    from tests.factories import make_user

    shop = Connector.objects.create(kind="http", name="Shop", prefix="shop")
    for number in range(MOST_SHOWN + 1):
        ToolRow.objects.create(connector=shop, key=str(number), name=f"op{number:02}", description="x")
    rows, user = ToolRow.objects.filter(connector=shop).select_related("connector"), make_user()
    assert [tool.name for tool in engine_tools(rows, user)] == ["shop_discover", "shop_execute"]
    ToolRow.objects.filter(name="op05").update(direct=True)
    assert len(engine_tools(rows.all(), user)) == MOST_SHOWN + 1, "few enough without it"
    ToolRow.objects.create(connector=shop, key="more", name="op99", description="x")
    assert [tool.name for tool in engine_tools(rows.all(), user)] == ["op05", "shop_discover", "shop_execute"]
