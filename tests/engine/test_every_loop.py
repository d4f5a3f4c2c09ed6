"""What holds for every loop: an end outside the model, permission before the body, failures as failures."""

import pytest

from agentapp.engine import (
    DAGAgent,
    Deny,
    DirectAgent,
    Limits,
    Lookup,
    MemoryJournal,
    ModelRefused,
    ModelRegistry,
    PlanExecuteAgent,
    ReActAgent,
    ReWOOAgent,
    ScriptedChatModel,
    ToolCall,
    Workflow,
)

from .planned import NO_WAIT, goal, judged, plan, prompt, step

LOOPS = ["react", "rewoo", "plan_execute", "dag"]


def loop(kind, replies, tools, **options):
    """An agent of a kind; the model never ends of its own accord."""
    model = ScriptedChatModel(replies)
    options = {"retry": NO_WAIT, "checklist_from": 0, **options}
    if kind == "react":
        return ReActAgent(model, tools, **options), model
    if kind == "rewoo":
        return ReWOOAgent(model, tools, max_replans=0, **options), model
    if kind == "plan_execute":
        return PlanExecuteAgent(model, tools, **options), model
    registry = ModelRegistry()
    registry.register(model)
    return DAGAgent(registry, tools, max_rounds=1, **options), model


def endless(kind):
    """Plans one step, or many calls, and then calls the tool for ever."""
    asked = []

    def reply(messages, **request):
        forced = request["tool_choice"]
        if isinstance(forced, dict):
            name = forced["function"]["name"]
            if name == "judge":
                return judged(False, 1.0)
            return plan(*(step(f"E{n}", args={"n": n}) for n in range(12))) if kind == "rewoo" else plan(goal("a"))
        if not request["tools"]:
            return "What there is."
        asked.append(1)
        return ToolCall(f"c{len(asked)}", "echo", {"n": len(asked)})

    return [reply] * 100


@pytest.mark.parametrize("kind", LOOPS)
async def test_a_model_that_never_ends_is_stopped_at_the_limit(counting, kind):  # P-5
    echo = counting(result=lambda n: f"result {n}")
    agent, _ = loop(kind, endless(kind), [echo.tool], limits=Limits(tool_calls=4))
    result = await agent.run("q")
    assert (echo.bodies, result.stop_reason) == (4, "limit:tool_calls")
    assert "What there is." in result.answer


@pytest.mark.parametrize("kind", LOOPS)
async def test_a_forbidden_tool_is_refused_before_its_body_runs(counting, kind):  # P-5
    echo = counting()

    async def gate(tool, arguments, key):
        return Deny("not for you")

    agent, _ = loop(kind, endless(kind), [echo.tool], gate=gate, max_iterations=3)
    result = await agent.run("q")
    assert echo.bodies == 0
    assert {found.error for found in result.tool_steps} == {"denied: not for you"}


@pytest.mark.parametrize("kind", LOOPS)
async def test_a_raising_tool_is_a_failed_call_in_the_trace(counting, kind):  # P-5
    journal = MemoryJournal()
    echo = counting(result=ValueError("broken"))
    agent, _ = loop(kind, endless(kind), [echo.tool], journal=journal, max_iterations=3)
    result = await agent.run("q")
    failed = [r["result"] for r in journal.records.values() if r["kind"] == "tool"]
    assert failed
    assert all(r["is_error"] and "ValueError: broken" in r["content"] for r in failed)
    assert all(found.error == "ValueError: broken" for found in result.tool_steps)


async def test_a_surprising_result_changes_the_next_call(counting):  # P-59
    first, other = counting("first", "a surprise"), counting("other")

    def deciding(messages, **_):
        return ToolCall("2", "other" if "surprise" in messages[-1].text else "first", {})

    agent, _ = loop("react", [ToolCall("1", "first", {}), deciding, "Done."], [first.tool, other.tool])
    await agent.run("q")
    assert (first.bodies, other.bodies) == (1, 1)


WEATHER = Workflow("weather", "echo", pattern=r"weather in (?P<place>\w+)", template="In {place}: {result}")


async def test_a_direct_lookup_is_one_tool_call_and_no_model_call(counting):  # P-4
    echo, journal = counting(result=lambda place: f"sun over {place}"), MemoryJournal()
    lookup = Lookup(WEATHER, {"place": "Rome"})
    agent = DirectAgent(ScriptedChatModel([]), [echo.tool], lookup=lookup, journal=journal)
    result = await agent.run("weather in Rome")
    assert (result.answer, echo.bodies, result.usage.calls) == ("In Rome: sun over Rome", 1, 0)
    again = DirectAgent(ScriptedChatModel([]), [echo.tool], lookup=lookup, journal=journal)
    assert await again.run("weather in Rome") == result
    assert echo.bodies == 1


async def test_a_direct_lookup_can_be_worded_by_one_model_call(counting):  # P-4
    echo = counting(result="sun")
    model = ScriptedChatModel(["It is sunny."])
    lookup = Lookup(Workflow("w", "echo"), {})
    result = await DirectAgent(model, [echo.tool], lookup=lookup).run("weather")
    assert (result.answer, len(model.requests), echo.bodies) == ("It is sunny.", 1, 1)
    assert "sun" in prompt(model.requests[0])


async def test_a_direct_lookup_that_fails_says_so(counting):
    echo = counting(result=ValueError("no station"))
    agent = DirectAgent(ScriptedChatModel([]), [echo.tool], lookup=Lookup(WEATHER, {"place": "Rome"}))
    assert (await agent.run("q")).answer == "The lookup failed: ValueError: no station"


async def test_a_direct_answer_is_one_call_without_tools(counting):
    seen = []
    model = ScriptedChatModel(["Hello."])
    result = await DirectAgent(model, [counting().tool], emit=seen.append).run("Hi")
    assert (result.answer, model.requests[0]["tools"], result.streamed) == ("Hello.", None, True)
    assert [e.channel for e in seen].count("answer") >= 3
    assert (await DirectAgent(ScriptedChatModel([ModelRefused("no")])).run("Hi")).answer.startswith("The model gave no")
