"""The ladder of structured calls, and choosing tools with it."""

import pytest

from agentapp.engine import (
    BadModelRequest,
    MemoryJournal,
    ReActAgent,
    ScriptedChatModel,
    StructuredOutputError,
    ToolCall,
    ToolRegistry,
    select_tools,
    structured_llm_call,
)

from .conftest import call_text, final_text

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FULL, TEXT_AND_JSON, TEXT = {"tool_call": True, "json_mode": True}, {"json_mode": True}, {}


async def ask(replies, abilities=FULL, **options):
    model = ScriptedChatModel(replies, abilities=abilities)
    return await structured_llm_call(model, [], SCHEMA, **options), model


async def test_the_forced_call_comes_first():
    result, model = await ask([ToolCall("1", "respond", {"n": 1})])
    assert (result.value, result.level_used, result.llm_calls) == ({"n": 1}, "native", 1)
    assert model.requests[0]["tool_choice"] == {"type": "function", "function": {"name": "respond"}}


async def test_json_in_the_text_of_a_native_reply_counts():  # E-42
    result, _ = await ask(['{"n": 2}'])
    assert (result.value, result.level_used, result.llm_calls) == ({"n": 2}, "native", 1)


@pytest.mark.parametrize(("abilities", "calls"), [(FULL, 5), (TEXT_AND_JSON, 4), (TEXT, 2)])
async def test_a_bad_model_is_asked_a_bounded_number_of_times(abilities, calls):  # E-41
    model = ScriptedChatModel(["nothing"] * 9, abilities=abilities)
    with pytest.raises(StructuredOutputError, match="nothing"):
        await structured_llm_call(model, [], SCHEMA)
    assert len(model.requests) == calls


async def test_a_model_error_ends_its_level():  # E-44
    result, _ = await ask([BadModelRequest("no tools"), BadModelRequest("no json"), '{"n": 3}'])
    assert (result.value, result.level_used, result.llm_calls) == ({"n": 3}, "plain_text", 3)


async def test_a_bad_reply_is_shown_with_a_request_to_reformat():
    result, model = await ask(["prose", '{"n": 4}'], TEXT)
    assert result.value == {"n": 4}
    assert [message.role for message in model.requests[1]["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("parse_fn", [lambda data: 1 / 0, lambda data: None])
async def test_a_parser_that_refuses_is_a_failed_attempt(parse_fn):  # E-43
    result, _ = await ask(['{"n": 1}'] * 2, TEXT, parse_fn=parse_fn, default_value="d")
    assert (result.value, result.level_used, result.raw_data, result.llm_calls) == ("d", "default", {}, 2)


async def test_a_missing_required_key_is_a_failed_attempt():  # E-43
    result, _ = await ask(['{"m": 1}', '{"n": 5}'], TEXT)
    assert (result.value, result.llm_calls, result.usage.calls) == ({"n": 5}, 2, 2)


async def test_none_is_a_default_too():  # E-46
    assert (await ask(["x", "y"], TEXT, default_value=None))[0].value is None


async def test_the_regex_is_for_text_without_json_only():  # E-45
    tried = []
    result, _ = await ask(
        ["n=1", "n=2", '{"m": 1}', "n=7"], TEXT_AND_JSON, regex_fallback=lambda text: tried.append(text) or {"n": 7}
    )
    assert (tried, result.value) == (["n=7"], {"n": 7})


async def test_a_model_without_forced_choice_skips_the_native_level():  # E-47
    result, _ = await ask(['{"n": 1}'], {**FULL, "tool_choice": False})
    assert result.level_used == "json_mode"


# Tool selection


def many(counting, count):
    return [counting(f"tool_{n}").tool for n in range(count)]


async def test_few_tools_need_no_selection(counting):  # E-48
    model = ScriptedChatModel([])
    registry = ToolRegistry(many(counting, 12))
    assert await select_tools(model, "q", registry) is registry


async def test_the_first_six_known_names_are_chosen(counting):  # E-50
    names = ["tool_3", "nonsense", *(f"tool_{n}" for n in range(4, 12))]
    model = ScriptedChatModel([ToolCall("1", "choose_tools", {"tools": names})])
    chosen = await select_tools(model, "q", ToolRegistry(many(counting, 13)))
    assert chosen.names == ["tool_3", "tool_4", "tool_5", "tool_6", "tool_7"]
    catalog = model.requests[0]["messages"][1].text
    assert "tool_12: The tool tool_12." in catalog


@pytest.mark.parametrize("reply", [[], ["nonsense"], "tool_1", None])
async def test_a_useless_choice_means_all_tools(counting, reply):  # E-50
    replies = ["no json"] * 5 if reply is None else [ToolCall("1", "choose_tools", {"tools": reply})] + ["x"] * 4
    registry = ToolRegistry(many(counting, 13))
    assert await select_tools(ScriptedChatModel(replies), "q", registry) is registry


async def test_a_failing_model_means_all_tools(counting):  # E-50
    registry = ToolRegistry(many(counting, 13))
    assert await select_tools(ScriptedChatModel([BadModelRequest("no")] * 5), "q", registry) is registry


@pytest.mark.parametrize("json_mode", [True, False])
async def test_left_out_tools_can_be_loaded_and_replayed(counting, json_mode):  # E-48, E-52, E-53
    chosen = {"tools": ["tool_1"]}
    wanted = {"names": ["tool_7", "tool_1", "secret"]}
    if json_mode:
        script = ['{"tools": ["tool_1"]}', call_text("request_tools", **wanted), call_text("tool_7"), final_text("ok")]
    else:
        script = [
            ToolCall("1", "choose_tools", chosen),
            ToolCall("2", "request_tools", wanted),
            ToolCall("3", "tool_7", {}),
            "ok",
        ]
    tools, seen, journal = many(counting, 13), [], MemoryJournal()
    model = ScriptedChatModel(script, abilities={"json_mode": True, "tool_call": not json_mode})
    agent = ReActAgent(model, tools, emit=seen.append, journal=journal)
    result = await agent.run("q")
    assert [step.error for step in result.tool_steps] == [None, None]
    assert result.steps[0].observation == "loaded: tool_7; already loaded: tool_1; not found: secret"
    assert seen[0].data == {"phase": "selecting_tools", "total_tools": 13}
    assert "select/llm/0" in journal.records
    assert result.usage.calls == 4
    assert await agent.run("q") == result
