"""Choosing among many tools, asking for more of them, and what a provider takes at most."""

import pytest

from agentapp.engine import (
    BadModelRequest,
    MemoryJournal,
    ReActAgent,
    ReplayMismatch,
    ScriptedChatModel,
    ScriptExhausted,
    ToolCall,
    ToolRegistry,
    select_tools,
)

from .conftest import call_text, final_text


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


async def test_whatever_a_model_raises_means_all_tools(counting):  # E-50
    registry = ToolRegistry(many(counting, 13))
    assert await select_tools(ScriptedChatModel([ZeroDivisionError("odd")]), "q", registry) is registry


@pytest.mark.parametrize("error", [ReplayMismatch("k"), ScriptExhausted("short")])
async def test_faults_that_are_not_the_models_escape(counting, error):
    with pytest.raises(type(error)):
        await select_tools(ScriptedChatModel([error]), "q", ToolRegistry(many(counting, 13)))


async def test_pinned_tools_are_always_in_and_only_once(counting):  # E-52
    names = {"tools": [f"tool_{n}" for n in range(6)]}
    model = ScriptedChatModel([ToolCall("1", "choose_tools", names), "End."])
    await ReActAgent(model, many(counting, 14), pinned_tools=["tool_2", "tool_13"]).run("q")
    offered = [tool["function"]["name"] for tool in model.requests[1]["tools"]]
    assert offered == [*names["tools"], "tool_13", "request_tools"]


async def test_more_tools_are_offered_only_when_some_were_left_out(counting):  # E-52
    model = ScriptedChatModel([ToolCall("1", "choose_tools", {"tools": ["nonsense"]}), "End."])
    await ReActAgent(model, many(counting, 13)).run("q")
    assert len(model.requests[1]["tools"]) == 13


async def test_a_tool_that_is_asked_for_twice_is_loaded_once(counting):  # E-52
    script = [
        ToolCall("1", "choose_tools", {"tools": ["tool_1"]}),
        ToolCall("2", "request_tools", {"names": ["tool_7", "tool_7"]}),
        ToolCall("3", "request_tools", {"names": ["tool_7", "request_tools"]}),
        "End.",
    ]
    model = ScriptedChatModel(script)
    result = await ReActAgent(model, many(counting, 13)).run("q")
    assert [step.observation for step in result.tool_steps] == [
        "loaded: tool_7",
        "already loaded: tool_7; not found: request_tools",
    ]
    offered = [tool["function"]["name"] for tool in model.requests[-1]["tools"]]
    assert offered == ["tool_1", "request_tools", "tool_7"]


async def test_what_selection_left_out_cannot_be_called_unasked(counting):  # E-53
    chosen = ToolCall("1", "choose_tools", {"tools": ["tool_1"]})
    tools = [counting(f"tool_{n}") for n in range(13)]
    model = ScriptedChatModel([chosen, ToolCall("2", "tool_7", {}), "End."])
    result = await ReActAgent(model, [tool.tool for tool in tools]).run("q")
    assert "no tool named 'tool_7'" in result.steps[0].error
    assert tools[7].bodies == 0


class Narrow(ScriptedChatModel):
    """A model whose provider takes few tools."""

    max_tools = 20


@pytest.mark.parametrize("choice", [{"tools": ["nonsense"]}, None])
async def test_a_provider_never_gets_more_tools_than_it_takes(counting, choice):  # E-97, C-16
    selecting = [BadModelRequest("no")] * 3 if choice is None else [ToolCall("1", "choose_tools", choice)]
    asking = ToolCall("2", "request_tools", {"names": ["tool_150", "tool_151"]})
    model = Narrow([*selecting, asking, "End."])
    result = await ReActAgent(model, many(counting, 200), pinned_tools=["tool_199"]).run("q")
    offered = [[tool["function"]["name"] for tool in r["tools"]] for r in model.requests[-2:]]
    assert [len(names) for names in offered] == [20, 20]
    assert "tool_199" in offered[0]
    assert result.steps[0].observation == "not loaded, there is no room for more: tool_150, tool_151"


async def test_tools_in_the_prompt_are_not_counted(counting):
    model = Narrow(['{"tools": ["nonsense"]}', final_text("End.")], abilities={"json_mode": True})
    await ReActAgent(model, many(counting, 30)).run("q")
    assert "tool_29" in model.requests[-1]["messages"][0].text


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
