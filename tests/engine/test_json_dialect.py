"""The JSON dialect: one object a reply, observations as user messages, bad replies repaired once."""

import json
from datetime import UTC, datetime

import pytest

from agentapp.engine import Completion, Message, ReActAgent, ScriptedChatModel, Usage

from .conftest import call_text, final_text

JSON = {"json_mode": True}


async def run(replies, tools=(), abilities=JSON, **options):
    model = ScriptedChatModel(replies, abilities=abilities)
    return await ReActAgent(model, tools, **options).run("q"), model


@pytest.mark.parametrize(
    ("abilities", "kind"),
    [({"json_schema": True, "json_mode": True}, "json_schema"), (JSON, "json_object"), ({}, None)],
)
async def test_the_reply_format_follows_the_abilities(add, abilities, kind):  # E-15
    _, model = await run([final_text("ok")], [add], abilities)
    sent = model.requests[0]["response_format"]
    assert (sent and sent["type"]) == kind
    if kind == "json_schema":
        assert sent["json_schema"]["schema"]["properties"]["tool_name"]["enum"] == ["add"]
    system = model.requests[0]["messages"][0].text
    assert "add: Adds two numbers." in system
    assert "final_answer" in system


async def test_the_observation_is_a_user_message(add):  # E-16
    _, model = await run([call_text("add", a=1, b=2), final_text("3")], [add])
    assert model.requests[1]["messages"][-1] == Message.user("Observation: 3")


async def test_an_error_is_an_observation_too(counting):  # E-16
    bad = counting("bad", KeyError("x"))
    _, model = await run([call_text("bad"), final_text("sorry")], [bad.tool])
    assert model.requests[1]["messages"][-1].text == "Observation: Error: KeyError: 'x'"


@pytest.mark.parametrize("arguments", ["", ', "tool_args": null'])
async def test_missing_arguments_are_an_empty_object(counting, arguments):  # E-17
    result, _ = await run(
        [f'{{"type": "tool_call", "tool_name": "echo"{arguments}}}', final_text("ok")], [counting().tool]
    )
    assert (result.steps[0].arguments, result.steps[0].error) == ({}, None)


@pytest.mark.parametrize("reply", ['{"answer": "yes"}', '{"type": "done", "answer": "yes"}'])
async def test_an_object_with_an_answer_is_final_whatever_its_type(reply):  # E-18
    result, _ = await run([reply])
    assert (result.answer, result.stop_reason) == ("yes", "final_answer")


async def test_a_call_without_a_type_is_a_call(counting):  # E-18
    echo = counting()
    await run(['{"tool_name": "echo", "tool_args": {}}', final_text("ok")], [echo.tool])
    assert echo.bodies == 1


@pytest.mark.parametrize(("answer", "text"), [({"a": 1}, '{"a": 1}'), ([1, 2], "[1, 2]"), (42, "42"), (False, "false")])
async def test_an_answer_is_always_text(answer, text):  # E-19
    result, _ = await run([final_text(answer)])
    assert result.answer == text


async def test_a_reply_without_an_object_is_asked_for_again():  # E-20
    result, model = await run(["Let me think.", final_text("ok")])
    assert (result.answer, result.iterations) == ("ok", 2)
    raw, request = model.requests[1]["messages"][-2:]
    assert (raw.role, raw.text) == ("assistant", "Let me think.")
    assert "JSON object" in request.text


async def test_the_second_reply_without_an_object_is_the_answer():  # E-20
    result, _ = await run(["First.", "Just this."])
    assert (result.answer, result.stop_reason, result.iterations) == ("Just this.", "final_answer", 2)
    assert "could not be parsed" in result.steps[-1].reasoning


async def test_on_the_last_iteration_raw_text_is_the_answer(counting):  # E-21
    result, _ = await run([call_text("echo"), "Raw."], [counting().tool], max_iterations=2)
    assert (result.answer, result.stop_reason) == ("Raw.", "final_answer")
    assert "could not be parsed" in result.steps[-1].reasoning


async def test_two_empty_replies_are_no_answer():  # E-22
    result, model = await run(["", " "])
    assert result.stop_reason == "no_answer"
    assert result.answer
    assert all(message.text for message in model.requests[1]["messages"])


async def test_invented_observations_are_not_believed(counting):  # E-24
    echo = counting()
    reply = call_text("echo", n=1) + "\nObservation: done\n" + call_text("echo", n=2)
    result, _ = await run([reply, final_text("ok")], [echo.tool])
    assert (echo.bodies, result.steps[0].arguments) == (1, {"n": 1})


async def test_reasoning_of_the_object_wins_over_the_channel():  # E-89
    replies = [
        Completion(
            Message("assistant", json.dumps({"answer": "a", "reasoning": said}), reasoning="channel"), "stop", Usage()
        )
        for said in ("object", "")
    ]
    for reply, expected in zip(replies, ("object", "channel"), strict=True):
        result, _ = await run([reply])
        assert result.steps[0].reasoning == expected


SMALL = {"small": True, "json_schema": True}


async def test_a_small_model_gets_a_strict_schema_and_answers_in_plain_text_after_its_tool(add):
    result, model = await run([call_text("add", a=1, b=2), "It is 3."], [add], SMALL)
    call, final = model.requests[0]["response_format"]["json_schema"]["schema"]["anyOf"]
    assert call["properties"]["tool_name"]["enum"] == ["add"]
    assert call["properties"]["reasoning"]["maxLength"] == 100
    assert call["properties"]["tool_args"]["required"] == ["a", "b"]
    assert final["properties"]["type"]["enum"] == ["final_answer"]
    assert model.requests[1]["response_format"] is None
    assert (result.answer, result.stop_reason, result.iterations) == ("It is 3.", "final_answer", 2)


async def test_a_small_model_speaks_after_a_failed_call_too(add):
    result, model = await run([call_text("add", a="one", b=2), "I could not add these."], [add], SMALL)
    assert model.requests[1]["response_format"] is None
    assert (result.answer, len(model.requests)) == ("I could not add these.", 2)


async def test_a_small_model_streams_the_answer_that_follows_its_tool(add):
    seen = []
    model = ScriptedChatModel([call_text("add", a=1, b=2), "It is 3."], abilities={**SMALL, "streaming": True})
    result = await ReActAgent(model, [add], stream_direct=True, emit=seen.append).run("1 + 2?")
    assert [request["stream"] for request in model.requests] == [False, True]
    assert (result.answer, result.streamed) == ("It is 3.", True)
    assert "".join(event.data.get("content", "") for event in seen if event.channel == "answer") == "It is 3."


async def test_a_small_model_is_not_told_the_time_so_that_its_examples_stay_cached(add):
    _, model = await run([final_text("ok")], [add], SMALL, clock=lambda: datetime(2026, 1, 31, tzinfo=UTC))
    assert "2026" not in model.requests[0]["messages"][0].text


async def test_examples_are_never_compacted(add):
    shown = "Observation: " + "a long result " * 20
    example = [Message.user("1 + 1?"), Message.assistant(call_text("add", a=1, b=1)), Message.user(shown)]
    replies = [call_text("add", a=1, b=2), final_text("3")]
    _, model = await run(replies, [add], examples=[example] * 10)
    first, second = (request["messages"] for request in model.requests)
    assert [message.text for message in second[1:31]] == [message.text for message in example] * 10
    assert second[: len(first)] == first


REACT = "Thought: I look.\nAction: echo\nAction Input: {}\nObservation: invented\nFinal Answer: made up"


@pytest.mark.parametrize(
    "reply",
    [
        REACT,
        '<tool_call>{"name": "echo", "arguments": {}}</tool_call>',
        "[echo()]",
        '{"name": "echo", "arguments": {}}',
        '{"type": "tool_call", "tool_name": "echo", "tool_args": "{}"}',
    ],
)
async def test_calls_in_another_form_are_calls_here_too(counting, reply):  # E-24, E-96
    echo = counting()
    result, model = await run([reply, final_text("ok")], [echo.tool])
    assert (result.answer, echo.bodies, len(model.requests)) == ("ok", 1, 2)


async def test_the_answer_of_a_react_prompt_is_an_answer():
    result, _ = await run(["Thought: Known.\nFinal Answer: 42"])
    assert (result.answer, result.steps[0].reasoning, result.iterations) == ("42", "Known.", 1)


@pytest.mark.parametrize("said", ['"half past two"', "[1]", "7"])
async def test_arguments_that_are_no_object_do_not_run(counting, said):  # E-32
    echo = counting()
    reply = f'{{"type": "tool_call", "tool_name": "echo", "tool_args": {said}}}'
    result, _ = await run([reply, final_text("ok")], [echo.tool])
    assert echo.bodies == 0
    assert "not valid" in result.steps[0].error


async def test_markup_that_cannot_be_read_is_never_the_answer(counting):  # E-96
    result, model = await run(["<tool_call>{broken", "<tool_call>{broken"], [counting().tool])
    assert result.stop_reason == "no_answer"
    assert "tool_call>" not in result.answer
    assert len(model.requests) == 2


async def test_an_object_that_is_no_reply_is_asked_for_again():  # E-20
    result, _ = await run(['{"note": 1}', final_text("ok")])
    assert (result.answer, result.iterations) == ("ok", 2)
