"""Tools: what they are made of, how one is run, and what a registry holds."""

import asyncio
import threading
from typing import Annotated, Literal

import pytest
from pydantic import Field

from agentapp.engine import EffectClass, MemoryJournal, Tool, ToolRegistry, ToolResult, tool
from agentapp.engine.tools import observation_for_model, result_to_dict

OBJECT = {"type": "object"}


async def execute(function, timeout=5.0, **arguments):
    return await Tool("t", "", OBJECT, function, timeout=timeout).execute(arguments)


def test_a_typed_function_becomes_a_tool():
    @tool(effect_class=EffectClass.READ, needs_approval=True, name="weather")
    async def look_up(
        city: Annotated[str, Field(description="Its name")], days: int = 1, kind: Literal["a", "b"] = "a"
    ) -> str:
        """Tells the weather.

        In any city.
        """
        return city

    assert (look_up.name, look_up.description) == ("weather", "Tells the weather.\n\nIn any city.")
    assert (look_up.effect_class, look_up.needs_approval) == (EffectClass.READ, True)
    assert look_up.parameters["required"] == ["city"]
    assert look_up.parameters["properties"]["city"] == {"description": "Its name", "type": "string"}
    assert look_up.parameters["properties"]["kind"]["enum"] == ["a", "b"]
    assert look_up.argument_error({"city": "Kiel", "days": 3}) is None
    assert "days" in look_up.argument_error({"city": "Kiel", "days": "x"})
    assert look_up.argument_error({"city": "Kiel", "more": 1})


def test_what_cannot_be_given_by_name_is_no_tool():
    with pytest.raises(TypeError, match="rest"):

        @tool
        def spread(*rest: int) -> int:
            return len(rest)


def test_a_tool_is_irreversible_unless_it_says_otherwise():
    assert Tool("t", "", OBJECT, lambda: "").effect_class is EffectClass.ONCE


@pytest.mark.parametrize("arguments", [None, [1], "text", {"x": float("nan")}, {"x": [{"y": float("inf")}]}])
def test_arguments_that_are_no_finite_object_are_refused(arguments):
    assert Tool("t", "", OBJECT, lambda: "").argument_error(arguments)


@pytest.mark.parametrize(
    ("value", "content"), [("text", "text"), ({"a": "ä"}, '{"a": "ä"}'), (3, "3"), (None, ""), (ToolResult("r"), "r")]
)
async def test_results_become_text(value, content):
    assert await execute(lambda: value) == ToolResult(content)


async def test_a_result_that_is_no_json_is_an_error():
    assert (await execute(lambda: {1, 2})).is_error


@pytest.mark.parametrize("error", [ValueError("bad"), StopIteration("odd"), TimeoutError("slow"), SystemExit("out")])
@pytest.mark.parametrize("in_thread", [True, False])
async def test_whatever_a_tool_raises_is_a_result(error, in_thread):
    def plain():
        raise error

    async def coroutine():
        raise error

    if not in_thread and isinstance(error, SystemExit | StopIteration):
        return  # these do not pass through coroutines
    result = await execute(plain if in_thread else coroutine)
    assert result.is_error
    assert str(error) in result.content


async def test_a_plain_function_runs_in_a_thread_of_its_own():
    assert (await execute(lambda: threading.current_thread() is threading.main_thread())).content == "false"


async def test_a_plain_function_that_hangs_is_left_behind():
    release = threading.Event()
    result = await execute(lambda: release.wait(10), timeout=0.05)
    release.set()
    assert result == ToolResult("TimeoutError: no result after 0.05 s", is_error=True)


async def test_a_plain_function_may_return_a_coroutine():
    async def later():
        return "later"

    assert (await execute(lambda: later())).content == "later"


async def test_a_tool_that_cancels_itself_does_not_cancel_the_run():
    async def body():
        raise asyncio.CancelledError

    assert (await execute(body)).is_error


def test_a_registry_keeps_order_and_unique_names(counting):
    tools = [counting(name).tool for name in ("b", "a", "c")]
    registry = ToolRegistry(tools)
    assert (registry.names, len(registry), list(registry)) == (["b", "a", "c"], 3, tools)
    assert registry.subset(["c", "b", "unknown"]).names == ["b", "c"]
    assert registry.get("unknown") is None
    with pytest.raises(ValueError, match="'a'"):
        registry.register(tools[1])


def test_the_catalogue_has_one_short_line_a_tool():  # E-49
    long = Tool("long", "word\n" * 40, {"type": "object", "properties": {"secret": {}}}, lambda: "")
    line = ToolRegistry([long]).catalog()
    assert "\n" not in line
    assert len(line) == len("long: ") + 80
    assert line.endswith("…")
    assert "secret" not in line


def test_schema_declarations_that_providers_reject_are_left_out():  # E-97
    definition = Tool("t", "", {"$schema": "x", "type": "object"}, lambda: "").definition
    assert definition["function"]["parameters"] == {"type": "object"}


async def test_records_of_a_journal_are_plain_json(counting):
    import json

    from agentapp.engine import ReActAgent, ScriptedChatModel, ToolCall

    journal = MemoryJournal()
    model = ScriptedChatModel([ToolCall("1", "echo", {}), "ok"])
    await ReActAgent(model, [counting().tool], journal=journal).run("q")
    assert json.loads(json.dumps(journal.records)) == journal.records


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#/$defs/gone"},
        {"pattern": "("},
        {"$ref": "#/properties/a"},
    ],
)
def test_a_schema_that_cannot_be_used_is_a_fault_and_nothing_is_fetched(schema):
    broken = Tool("t", "T.", {"type": "object", "properties": {"a": schema}}, lambda a: a)
    assert "schema cannot be used" in (broken.argument_error({"a": "x"}) or "")


def test_a_result_beyond_the_limit_is_cut_for_the_model_and_whole_in_the_record():
    long = Tool("t", "T.", OBJECT, str, max_result_chars=10)
    recorded = result_to_dict(ToolResult("0123456789abcdef"), long, 0.1)
    assert recorded["content"] == "0123456789\n[cut: 10 of 16 characters shown]"
    assert recorded["full"] == "0123456789abcdef"
    assert "abcdef" not in observation_for_model(recorded)
    assert "full" not in result_to_dict(ToolResult("0123456789"), long, 0.1)
