"""Going round in circles is noticed by what is called."""

import pytest

from agentapp.engine import ReActAgent, ScriptedChatModel, ToolCall, validate_pairing


def endless(*calls):
    """A model that makes these calls for ever, with new ids."""
    count = iter(range(10_000))

    def reply(messages, **_):
        number = next(count)
        name, arguments = calls[number % len(calls)]
        return ToolCall(f"id{number}", name, dict(arguments))

    return ScriptedChatModel([reply] * 60)


async def run(model, *tools, **options):
    return await ReActAgent(model, [tool.tool for tool in tools], checklist_from=0, reflect_every=0, **options).run("q")


def texts(request):
    return [message.text for message in request["messages"]]


async def test_an_identical_call_runs_three_times_and_two_blocks_end_the_run(counting):  # E-81, C-1
    echo = counting()
    model = endless(("echo", {"x": 1}))
    result = await run(model, echo)
    assert (echo.bodies, result.stop_reason, len(model.requests)) == (3, "loop_detected", 5)
    assert "blocked repeat" in result.tool_steps[-1].error
    validate_pairing(result.messages)


async def test_key_order_makes_no_difference(counting):  # E-79
    echo = counting()
    await run(endless(("echo", {"x": 1, "y": 2}), ("echo", {"y": 2, "x": 1})), echo)
    assert echo.bodies == 3


async def test_the_third_identical_call_is_answered_with_one_warning(counting):  # E-80
    answers = iter("abcdef")
    echo = counting(result=lambda **_: next(answers))
    model = ScriptedChatModel([*(ToolCall(str(n), "echo", {"x": 1}) for n in range(4)), "End."])
    result = await run(model, echo)
    assert result.answer == "End."
    warned = [sum("called 3 times" in text for text in texts(request)) for request in model.requests]
    assert warned == [0, 0, 0, 1, 1]


async def test_different_arguments_give_no_warning(counting):  # E-80
    model = ScriptedChatModel([*(ToolCall(str(n), "echo", {"x": n}) for n in range(6)), "End."])
    await run(model, counting())
    assert not any("called 3 times" in text for text in texts(model.requests[-1]))


async def test_changing_results_are_no_repeat(counting):
    numbers = iter(range(100))
    echo = counting(result=lambda **_: next(numbers))
    model = ScriptedChatModel([*(ToolCall(str(n), "echo", {}) for n in range(8)), "End."])
    assert (await run(model, echo)).answer == "End."
    assert echo.bodies == 8


async def test_a_cycle_of_calls_is_stopped(counting):  # E-82
    numbers = iter(range(100))
    tools = [counting(name, lambda **_: next(numbers)) for name in ("one", "two")]
    result = await run(endless(("one", {}), ("two", {})), *tools)
    assert result.stop_reason == "loop_detected"
    assert sum(tool.bodies for tool in tools) == 6


async def test_a_repeatable_tool_may_poll_while_its_results_change(counting):  # E-82
    numbers = iter(range(100))
    tools = [counting(name, lambda **_: next(numbers), repeatable=True) for name in ("one", "two")]
    model = ScriptedChatModel([*(ToolCall(str(n), ("one", "two")[n % 2], {}) for n in range(10)), "End."])
    assert (await run(model, *tools)).answer == "End."


async def test_the_same_invalid_arguments_three_times_stop_the_run(add):  # E-82
    model = endless(("add", {"a": "x"}))
    result = await ReActAgent(model, [add], checklist_from=0).run("q")
    assert (result.stop_reason, len(model.requests)) == ("loop_detected", 3)


async def test_the_guard_can_be_switched_off(counting):
    echo = counting()
    result = await run(endless(("echo", {})), echo, block_repeats=False, max_iterations=8)
    assert (echo.bodies, result.stop_reason) == (8, "max_iterations")


def different(count):
    return [ToolCall(str(n), "echo", {"n": n}) for n in range(count)]


@pytest.mark.parametrize(("turns", "reminders"), [(5, 0), (6, 1), (12, 2)])
async def test_the_goal_is_restated_every_six_turns(counting, turns, reminders):  # E-83
    model = ScriptedChatModel([*different(turns), "End."])
    await ReActAgent(model, [counting().tool], checklist_from=0).run("find the harbour")
    told = [text for text in texts(model.requests[-1]) if "rounds of tools" in text]
    assert len(told) == reminders
    assert all("find the harbour" in text for text in told)


async def test_no_reminder_when_no_iteration_is_left(counting):  # E-83
    model = ScriptedChatModel(different(6))
    result = await ReActAgent(model, [counting().tool], max_iterations=6).run("q")
    assert not any("rounds of tools" in message.text for message in result.messages)


@pytest.mark.parametrize(
    ("turns", "answer", "options", "calls"),
    [(3, "Short.", {}, 5), (2, "Short.", {}, 3), (3, "x" * 801, {}, 4), (3, "Short.", {"checklist_from": 0}, 4)],
)
async def test_a_short_answer_after_three_turns_is_checked_once(counting, turns, answer, options, calls):  # E-84
    model = ScriptedChatModel([*different(turns), answer, "Second."])
    result = await ReActAgent(model, [counting().tool], **options).run("q")
    assert len(model.requests) == calls
    assert result.answer == ("Second." if calls > turns + 1 else answer)
