"""Plan-and-Execute: goals in order, an agent for each, a report."""

import pytest

from agentapp.engine import (
    BadModelRequest,
    InterruptQueue,
    Limits,
    MemoryJournal,
    PlanError,
    PlanExecuteAgent,
    ReWOOAgent,
    ScriptedChatModel,
    ToolCall,
    validate_plan,
)
from agentapp.engine.plan_prompts import REPORTER, SOLVER

from .planned import NO_WAIT, goal, plan, prompt, states


def agent_with(replies, tools=(), **options):
    model = ScriptedChatModel(replies)
    options.setdefault("retry", NO_WAIT)
    return PlanExecuteAgent(model, tools, **options), model


THREE = plan(goal(1), goal(2), goal(3))


async def test_goals_are_worked_on_in_order_and_reported(counting):  # P-33, P-39, calls to expect
    echo = counting(result=lambda n: f"found {n}")
    replies = [THREE]
    for n in (1, 2, 3):
        replies += [ToolCall("c", "echo", {"n": n}), f"Result {n}."]
    agent, model = agent_with([*replies, "The report."], [echo.tool])
    result = await agent.run("q")
    assert (result.answer, result.stop_reason, echo.bodies) == ("The report.", "final_answer", 3)
    assert len(model.requests) == 2 * 3 + 2  # and the router and the evaluator, where there are any: 2s + 4
    assert "Result 1." in prompt(model.requests[3])
    assert all(f"Result {n}." in prompt(model.requests[-1]) for n in (1, 2, 3))
    assert SOLVER.split(".")[1] == REPORTER.split(".")[1].replace("; what each came to is listed as evidence", "")
    assert [one.id for one in result.plan] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("code", "steps"),
    [
        ("plan_empty", []),
        ("plan_too_large", [goal(n) for n in range(9)]),
        ("plan_duplicate_id", [goal(1), goal(1)]),
        ("plan_blank_step", [{"id": 1, "task": ""}]),
    ],
)
async def test_each_fault_of_a_plan_ends_the_run_without_a_step(counting, code, steps):  # P-31, P-32
    agent, model = agent_with([plan(*steps)] * 2, [counting().tool])
    result = await agent.run("q")
    assert (result.stop_reason, result.error.split(":")[0], len(model.requests)) == ("plan_failed", code, 2)
    with pytest.raises(PlanError) as caught:
        validate_plan(steps, max_steps=8)
    assert caught.value.code == code


async def test_a_tool_hint_is_advice(counting):  # P-33
    first, second = counting("first"), counting("second")
    agent, model = agent_with(
        [plan(goal(1, tool_hint="first")), ToolCall("c", "second", {}), "Done.", "Report."], [first.tool, second.tool]
    )
    result = await agent.run("q")
    assert "first" in model.requests[1]["messages"][-1].text
    assert (first.bodies, second.bodies, result.tool_steps[0].tool_name) == (0, 1, "second")
    assert result.plan.steps[0].tool_hint == "first"


async def test_inner_messages_stay_in_the_trace(counting):  # P-34
    echo = counting(result="secret of step one")
    journal = MemoryJournal()
    replies = [plan(goal(1), goal(2)), ToolCall("c", "echo", {}), "Result 1.", "Result 2.", "Report."]
    agent, model = agent_with(replies, [echo.tool], journal=journal)
    result = await agent.run("q")
    assert "secret of step one" not in prompt(model.requests[3])
    assert all(message.role != "tool" for message in model.requests[3]["messages"])
    assert journal.records["plan/1/1/react/1/tool/0"]["result"]["content"] == "secret of step one"
    assert any(message.text == "secret of step one" for message in result.messages)


@pytest.mark.parametrize("fault", [BadModelRequest("no"), RuntimeError("broken")])
async def test_a_step_that_raised_is_failed_and_the_work_goes_on(fault):  # P-35, known fault 9
    seen = []
    agent, model = agent_with([plan(goal(1), goal(2)), fault, "Result 2.", "Report."], emit=seen.append)
    result = await agent.run("q")
    outcome = result.plan.outcomes["1"]
    assert (outcome.status, outcome.value) == ("error", "")
    assert states(seen) == [("1", "running"), ("1", "failed"), ("2", "running"), ("2", "done")]
    assert "MISSING EVIDENCE" in prompt(model.requests[2])
    assert "reach 1" in result.answer


async def test_a_failed_step_can_stop_the_work():  # P-35
    agent, model = agent_with([THREE, BadModelRequest("no")], on_error="stop")
    result = await agent.run("q")
    assert (result.stop_reason, len(model.requests)) == ("plan_failed", 2)
    assert result.plan.outcomes["3"].code == "stopped"
    assert "BadModelRequest" in result.answer


async def test_a_failed_step_can_lead_to_a_new_plan():  # P-35
    replies = [THREE, BadModelRequest("no"), plan(goal(1, task="another way")), "Result.", "Report."]
    agent, model = agent_with(replies, on_error="replan")
    result = await agent.run("q")
    assert (result.answer, [one.id for one in result.plan]) == ("Report.", ["4"])
    assert "step 1 failed" in prompt(model.requests[2])


async def test_without_a_rule_later_goals_stay_as_they_are():  # P-36
    agent, model = agent_with([THREE, "A surprise!", "Result 2.", "Result 3.", "Report."])
    result = await agent.run("q")
    assert (result.plan.version, len(model.requests)) == (1, 5)


async def test_a_rule_that_is_surprised_changes_the_tail_and_nothing_else():  # P-36
    seen = []

    def surprised(step, outcome):
        return "that was not expected" if "surprise" in outcome.value else None

    tail = plan(goal(4, task="look closer"))
    agent, model = agent_with(
        [THREE, "Result 1.", "A surprise!", tail, "Result 4.", "Report."], replan=surprised, emit=seen.append
    )
    result = await agent.run("q")
    assert len(model.requests) == 6
    assert states(seen) == [
        ("1", "running"),
        ("1", "done"),
        ("2", "running"),
        ("2", "done"),
        ("3", "skipped"),
        ("4", "running"),
        ("4", "done"),
    ]
    assert [e.data for e in seen if e.channel == "phase"][-1]["reason"] == "that was not expected"
    text = prompt(model.requests[-1])
    assert all(part in text for part in ("Result 1.", "A surprise!", "Result 4."))
    assert "reach 3" not in text
    assert result.answer == "Report."


async def test_a_rule_that_is_never_satisfied_comes_to_an_end():
    replies = [plan(goal(1))]
    for n in range(2, 7):
        replies += ["Result.", plan(goal(n))]
    agent, _ = agent_with([*replies, "Result.", "Report."], replan=lambda step, outcome: True)
    assert (await agent.run("q")).answer == "Report."


async def test_planner_and_executor_may_be_different_models():  # P-37
    planner = ScriptedChatModel([plan(goal(1))], name="planner")
    journal = MemoryJournal()
    agent, _ = agent_with(["Result.", "Report."], planner_model=planner, journal=journal)
    await agent.run("q")
    assert {r["request"]["model"] for r in journal.records.values() if r["kind"] == "llm"} == {"planner", "scripted"}


@pytest.mark.parametrize("done", [1, 2])
async def test_after_a_kill_the_work_goes_on_with_the_next_step(counting, done):  # P-38
    echo = counting()
    records, models = {}, []

    class Killed(Exception):
        pass

    class Killing(MemoryJournal):
        async def call(self, key, *args, **options):
            if models and key == f"plan/1/{done + 1}/begun":
                models.clear()
                raise AssertionError("killed")
            return await super().call(key, *args, **options)

    replies = [THREE]
    for n in (1, 2, 3):
        replies += [ToolCall("c", "echo", {"n": n}), f"Result {n}."]
    replies.append("Report.")
    models.append(1)
    with pytest.raises(AssertionError, match="killed"):
        await agent_with(replies, [echo.tool], journal=Killing(records))[0].run("q")
    assert echo.bodies == done
    again, model = agent_with(replies[1 + 2 * done :], [echo.tool], journal=MemoryJournal(records))
    assert (await again.run("q")).answer == "Report."
    assert (echo.bodies, len(model.requests)) == (3, 2 * (3 - done) + 1)


async def test_a_step_that_never_ends_stops_at_the_limit_and_there_is_a_report(counting):  # P-5
    echo = counting(result=lambda n: str(n))
    calls = [ToolCall("c", "echo", {"n": n}) for n in range(3)]
    agent, _model = agent_with([THREE, *calls, "What I have.", "Report."], [echo.tool], limits=Limits(tool_calls=3))
    result = await agent.run("q")
    assert (echo.bodies, result.stop_reason, result.answer.startswith("Report.")) == (3, "limit:tool_calls", True)
    assert result.plan.outcomes["2"].code == "limit"


async def test_an_interrupt_reaches_the_running_step_and_all_that_follow(counting):
    queue = InterruptQueue()
    echo = counting(result=lambda: queue.put("In euros.", id="m1") and "ok")
    replies = [plan(goal(1), goal(2)), ToolCall("c", "echo", {}), "Result 1.", "Result 2.", "Report."]
    agent, model = agent_with(replies, [echo.tool])
    await agent.run("q", interrupts=queue)
    assert all("In euros." in prompt(request) for request in model.requests[2:])


async def test_both_reports_are_drafts_of_the_same_kind(counting):  # P-39
    agent, _ = agent_with([plan(goal(1)), "Result.", "Report."])
    solved = await ReWOOAgent(
        ScriptedChatModel(
            [plan({"id": "E1", "task": "t", "tool_name": "echo", "tool_args": {}, "depends_on": []}), "ok"]
        ),
        [counting().tool],
    ).run("q")
    reported = await agent.run("q")
    for result in (solved, reported):
        assert (result.stop_reason, result.streamed, result.messages[-1].text) == ("final_answer", True, result.answer)
