"""The ladder of structured calls, and choosing tools with it."""

import pytest

from agentapp.engine import (
    BadModelRequest,
    MemoryJournal,
    ScriptedChatModel,
    StructuredOutputError,
    ToolCall,
    structured_llm_call,
)

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


async def test_a_regex_that_fails_is_a_failed_attempt():  # E-45
    result, _ = await ask(["n=1", '{"n": 2}'], TEXT, regex_fallback=lambda text: 1 / 0)
    assert (result.value, result.llm_calls) == ({"n": 2}, 2)


async def test_the_last_reply_is_named_when_nothing_helped():  # E-46
    with pytest.raises(StructuredOutputError) as caught:
        await ask(["x", "y" * 500], TEXT)
    assert "y" * 200 in str(caught.value)
    assert "y" * 201 not in str(caught.value)


@pytest.mark.parametrize("failures", [1, 2])
async def test_levels_that_failed_are_not_tried_again_on_a_replay(failures):
    """A model error leaves no record; that a later call has one tells enough."""
    journal = MemoryJournal()
    first, _ = await ask([*[BadModelRequest("no")] * failures, '{"n": 1}'], journal=journal, scope="plan")
    again, model = await ask([], journal=journal, scope="plan")
    assert (again, model.requests) == (first, [])
    assert list(journal.records) == [f"plan/llm/{failures}"]
