"""DAG: a graph of steps with an agent each, a judgement, and rounds of it."""

import asyncio

import pytest

from agentapp.engine import (
    ContextGuard,
    DAGAgent,
    DAGExecutor,
    DAGPlanner,
    EffectClass,
    InterruptQueue,
    MemoryJournal,
    Message,
    ModelRefused,
    ModelRegistry,
    Plan,
    PlanAnalyzer,
    PlanStep,
    ScriptedChatModel,
    StepOutcome,
    ToolCall,
)

from .planned import NO_WAIT, goal, judged, plan, prompt, states


def registry_of(**models):
    registry = ModelRegistry()
    for role, model in models.items():
        registry.register(model, (role,))
    return registry


def agent_with(replies, tools=(), **options):
    model = ScriptedChatModel(replies)
    options.setdefault("retry", NO_WAIT)
    return DAGAgent(registry_of(general=model), tools, **options), model


def answering(*rules):
    """Replies by what the prompt says, for steps that run side by side."""

    def reply(messages, **request):
        text = messages[-1].text if messages[-1].role == "user" else ""
        return next((answer for part, answer in rules if part in text), "done")

    return reply


DIAMOND = plan(goal("a"), goal("b", ["a"]), goal("c", ["a"]), goal("d", ["b", "c"]))


async def test_the_phases_of_a_run_and_its_calls(counting):  # P-40, P-43, calls to expect
    seen = []
    replies = [DIAMOND, "Result a.", "Result b.", "Result c.", "Result d.", judged(True, 0.9), "The answer."]
    agent, model = agent_with(replies, emit=seen.append, concurrency=1)
    result = await agent.run("q")
    assert (result.answer, result.stop_reason, len(model.requests)) == ("The answer.", "final_answer", 7)
    assert [e.data["phase"] for e in seen if e.channel == "phase"] == ["planning", "analyzing", "analyzed"]
    assert [id for id, status in states(seen) if status == "running"] == ["a", "b", "c", "d"]
    assert [e.channel for e in seen if e.channel in ("plan", "answer")][-1] == "answer"


@pytest.mark.parametrize(
    "steps",
    [
        [goal("a"), goal("b", ["a"]), goal("c", ["b"])],
        [goal("a"), goal("b"), goal("c")],
        [goal("a"), goal("b", ["a"]), goal("c", ["a"]), goal("d", ["b", "c"])],
    ],
)
async def test_lines_fans_and_diamonds_are_carried_out(steps):  # P-43
    agent, _ = agent_with([plan(*steps), *["Result."] * len(steps), judged(True), "The answer."])
    result = await agent.run("q")
    assert all(outcome.is_ok for outcome in result.plan.outcomes.values())
    assert len(result.plan.outcomes) == len(steps)


async def test_a_step_sees_the_goal_its_task_and_what_it_depends_on():  # P-42
    long = "x" * 60_000
    made = plan(goal("a"), goal("b"), goal("c", ["a"], task="compare", tool_hint="search"))
    agent, model = agent_with([made, "Result of a.", "Secret of b.", long, judged(True), "ok"], concurrency=1)
    await agent.run("the whole goal")
    text = prompt(model.requests[3])
    assert all(part in text for part in ("the whole goal", "compare", "search", "Result of a."))
    assert "Secret of b." not in text
    assert "reach b" not in text


async def test_a_long_result_is_cut_with_a_marker():  # P-42
    made = plan(goal("a"), goal("b", ["a"]))
    agent, model = agent_with([made, "x" * 60_000, "Result.", judged(True), "ok"])
    await agent.run("q")
    assert "[cut: 50,000 of 60,000 characters shown]" in prompt(model.requests[2])


async def test_each_step_has_the_model_of_its_hint():  # P-41
    general, fast = ScriptedChatModel([], name="general"), ScriptedChatModel([], name="fast")
    executor = DAGExecutor(registry_of(general=general, fast=fast), [], instructions="Be brief.")
    agents = [executor._resolve_agent(PlanStep("a", "t", model_hint=hint)) for hint in ("fast", "reasoning", "")]
    assert [agent.model.name for agent in agents] == ["fast", "general", "general"]
    assert len({id(agent) for agent in agents}) == 3
    assert agents[0].instructions == "Be brief."


async def test_steps_run_on_the_models_of_their_hints():  # P-41
    fast = ScriptedChatModel(["Fast result."], name="fast")
    general = ScriptedChatModel([plan(goal("a", model_hint="fast")), judged(True), "ok"], name="general")
    result = await DAGAgent(registry_of(general=general, fast=fast)).run("q")
    assert (result.plan.outcomes["a"].value, len(fast.requests), len(general.requests)) == ("Fast result.", 1, 3)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (judged(True, 1.7), (True, 1.0)),
        (judged(False, -0.3), (False, 0.0)),
        (judged(True, "much"), (True, 0.0)),
        (judged(True, float("inf")), (True, 0.0)),
        (judged("true", 0.4), (True, 0.4)),
    ],
)
async def test_a_judgement_is_kept_in_bounds(reply, expected):  # P-44
    analysis = await PlanAnalyzer(ScriptedChatModel([reply])).analyze("q", Plan("dag", 1, []))
    assert (analysis.achieved, analysis.confidence) == expected


async def test_a_judgement_with_unescaped_quotes_is_rescued():  # P-44
    broken = '{"achieved": true, "confidence": 0.9, "final_answer": "He said "yes" to it.", "reasoning": "All "done"."}'
    analysis = await PlanAnalyzer(ScriptedChatModel([broken] * 5)).analyze("q", Plan("dag", 1, []))
    assert (analysis.achieved, analysis.confidence) == (True, 0.9)
    assert (analysis.final_answer, analysis.reasoning) == ('He said "yes" to it.', 'All "done".')


@pytest.mark.parametrize("reply", ["nonsense", ModelRefused("no"), '{"achieved": "perhaps"}'])
async def test_a_judgement_that_cannot_be_read_is_none(reply):  # P-44
    analysis = await PlanAnalyzer(ScriptedChatModel([reply] * 5)).analyze("q", Plan("dag", 1, []))
    assert (analysis.achieved, analysis.confidence) == (False, 0.0)


async def test_there_are_three_plans_at_most():  # P-45, clarification 15
    replies = []
    for n in range(3):
        replies += [plan(goal(f"s{n}")), f"Result {n}.", judged(False, 0.1, f"lacks {n}")]
    agent, model = agent_with([*replies, "What there is."])
    result = await agent.run("q")
    assert (result.plan.version, len(model.requests), result.answer) == (3, 10, "What there is.")
    assert "lacks 0" in prompt(model.requests[3])


async def test_a_sure_no_ends_the_rounds():  # P-45
    agent, model = agent_with([plan(goal("a")), "Result.", judged(False, 0.8), "ok"], stop_confidence=0.8)
    assert (await agent.run("q")).answer == "ok"
    assert len(model.requests) == 4


async def test_a_new_plan_hears_of_all_rounds_of_the_latest_more():  # P-45
    replies = [
        plan(goal("s1")), "a" * 1_000, judged(False, 0.1),
        plan(goal("s2")), "b" * 1_000, judged(False, 0.1),
        plan(goal("s3")), "c", judged(True), "ok",
    ]  # fmt: skip
    agent, model = agent_with(replies)
    await agent.run("q")
    second, third = prompt(model.requests[3]), prompt(model.requests[6])
    assert "a" * 500 + "\n[cut" in second
    assert "a" * 200 + "\n[cut" in third
    assert "b" * 500 + "\n[cut" in third


async def test_an_incomplete_result_says_what_failed_and_what_was_skipped():  # P-46
    made = plan(goal("a"), goal("b", task="the rate"), goal("c", ["b"], task="the sum"))
    step = answering(("reach a", "Result a."), ("the rate", ModelRefused("gone")))
    agent, model = agent_with([made, step, step, judged(False, 0.9), "Only a."])
    result = await agent.run("q")
    assert result.answer.startswith("Only a.")
    assert "the rate" in result.answer
    assert "the sum" in result.answer
    assert "MISSING EVIDENCE" in prompt(model.requests[-1])


async def test_nothing_finished_is_said_plainly_and_without_a_model():  # P-46
    agent, model = agent_with([plan(goal("a")), ModelRefused("no"), judged(False, 1.0)])
    result = await agent.run("q")
    assert result.answer.startswith("Nothing could be found out")
    assert "reach a" in result.answer
    assert len(model.requests) == 3


async def test_an_interrupt_lets_running_steps_end_and_makes_the_plan_anew(counting):  # P-47
    queue, seen = InterruptQueue(), []
    echo = counting(result=lambda: queue.put("For Berlin.", id="m1") and "ok")
    made = plan(goal("a"), goal("b", ["a"]), goal("c", ["b"]))
    replies = [made, ToolCall("c", "echo", {}), "Result a.", plan(goal("d")), "Result d.", judged(True), "ok"]
    agent, model = agent_with(replies, [echo.tool], emit=seen.append)
    result = await agent.run("q", interrupts=queue)
    assert (result.answer, result.plan.version) == ("ok", 2)
    assert states(seen)[1:4] == [("a", "done"), ("b", "skipped"), ("c", "skipped")]
    assert "For Berlin." not in prompt(model.requests[2])
    for place in (3, 5, 6):  # planning, analysis, synthesis
        assert "For Berlin." in prompt(model.requests[place])
    assert [e.data["message_id"] for e in seen if e.channel == "inject"] == ["m1"]


async def test_an_interrupt_in_the_last_round_reaches_the_synthesis():  # P-47
    queue = InterruptQueue()

    def working(messages, **_):
        queue.put("In euros.")
        return "Result."

    agent, model = agent_with([plan(goal("a")), working, judged(False), "ok"], max_rounds=1)
    await agent.run("q", interrupts=queue)
    assert "In euros." in prompt(model.requests[2])
    assert "In euros." in prompt(model.requests[3])


async def test_side_effects_do_not_run_again_in_a_later_round(counting):  # P-48
    pay = counting("pay", "paid", effect_class=EffectClass.ONCE)
    call = ToolCall("c", "pay", {"n": 5})
    replies = [
        plan(goal("a")), call, "Paid.", judged(False, 0.1),
        plan(goal("b")), call, "It was paid before.", judged(True), "ok",
    ]  # fmt: skip
    agent, model = agent_with(replies, [pay.tool])
    await agent.run("q")
    assert pay.bodies == 1
    assert "not made twice" in prompt(model.requests[6])


async def test_a_step_that_succeeded_can_be_built_upon():  # P-48
    replies = [
        plan(goal("a"), goal("b")), "Result a.", "Result b.", judged(False, 0.1),
        plan(goal("a"), goal("c", ["a"])), "Result c.", judged(True), "ok",
    ]  # fmt: skip
    agent, model = agent_with(replies, concurrency=1)
    result = await agent.run("q")
    assert [one.id for one in result.plan] == ["c"]
    assert "Result a." in prompt(model.requests[5])


async def test_tools_are_chosen_once_for_all_steps(counting):  # P-48
    tools = [counting(f"tool_{n}").tool for n in range(13)]
    chosen = ToolCall("s", "choose_tools", {"tools": ["tool_3"]})
    agent, model = agent_with([chosen, plan(goal("a"), goal("b", ["a"])), "A.", "B.", judged(True), "ok"], tools)
    await agent.run("q")
    assert [definition["function"]["name"] for definition in model.requests[2]["tools"]] == ["tool_3"]
    assert len(model.requests) == 6


async def test_a_long_history_is_summarised_for_the_planner():  # P-40, P-61
    small, seen = ScriptedChatModel(["A summary of it all."], name="small"), []
    model = ScriptedChatModel([plan(goal("a")), "Result.", judged(True), "ok"])
    history = [Message.user("word " * 9_000), Message.assistant("word " * 9_000)] * 2
    agent = DAGAgent(registry_of(general=model, fast=small), emit=seen.append, journal=MemoryJournal())
    await agent.run("q", history=history)
    assert "A summary of it all." in prompt(model.requests[0])
    assert next(e.channel for e in seen) == "compact"


async def test_a_long_history_is_cut_without_a_small_model():  # P-40
    model = ScriptedChatModel([plan(goal("a")), "Result.", judged(True), "ok"])
    history = [Message.user("first " + "word " * 15_000), Message.assistant("word " * 9_000 + "last")]
    await DAGAgent(registry_of(general=model)).run("q", history=history)
    text = prompt(model.requests[0])
    assert "first" not in text
    assert "last" in text
    assert len(text) < 25_000


async def test_a_planner_of_graphs_can_be_tested_alone():  # P-30
    made = await DAGPlanner(ScriptedChatModel([DIAMOND])).plan("q")
    assert [(one.id, one.depends_on) for one in made][-1] == ("d", ("b", "c"))


async def test_what_streams_all_the_time_does_not_keep_an_interrupt_waiting():  # P-47
    queue = InterruptQueue()
    model = ScriptedChatModel(
        [plan(goal("a"), goal("b", ["a"])), lambda m, **_: queue.put("Stop.") and "Result a.", plan(goal("d")),
         "Result d.", judged(True), "ok"],
        abilities={"tool_call": True, "streaming": True},
    )  # fmt: skip
    agent = DAGAgent(registry_of(general=model), stream_direct=True, emit=lambda event: asyncio.sleep(0))
    result = await agent.run("q", interrupts=queue)
    assert "Stop." in prompt(model.requests[2])
    assert result.answer == "ok"


def test_an_outcome_says_what_happened():  # P-17
    outcome = StepOutcome("error", code="tool_failed", message="ValueError: x")
    assert outcome.to_dict() == {"status": "error", "code": "tool_failed", "message": "ValueError: x", "value": ""}
    assert ContextGuard(100).compact_model is None
