"""Runs in each mode, in a real worker: chosen by hand or by a router, with fixed workflows and helpers."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conversations.planning_brain import goals, planning, sums
from tests.conversations.test_main_job import call
from tests.fake_model import think
from tests.product import Person, Product, eventually


@pytest.fixture
def person(product: Product) -> Iterator[Person]:
    yield product.person()
    product.model.brain = think


def ask(product: Product, person: Person, question: str, mode: str) -> dict[str, Any]:
    status, run = call(product, person, "POST", "/api/v1/runs", {"input": question, "mode": mode, "wait": 30})
    assert status in (200, 202), run
    return eventually(lambda: (r := _run(product, person, run["id"]))["ended_at"] and r, "the run has ended")


def _run(product: Product, person: Person, run: str) -> dict[str, Any]:
    found: dict[str, Any] = call(product, person, "GET", f"/api/v1/runs/{run}")[1]
    return found


def calls(product: Product, person: Person, run: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
    return found


def models_asked(product: Product, person: Person, run: dict[str, Any]) -> list[str]:
    return [c["request"]["role"] for c in calls(product, person, run) if c["kind"] == "llm"]


def events(product: Product, person: Person, run: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call(product, person, "GET", f"/api/v1/runs/{run['id']}/events")[1]["items"]
    return found


def test_a_planned_run_makes_two_model_calls_and_tells_its_plan(product: Product, person: Person) -> None:
    product.model.brain = planning(sums("2 * 300", "3 * 300", "600 + 900", joined=True), answer="It is 1500.")
    run = ask(product, person, "Add two products", "rewoo")
    assert (run["status"], run["answer"], run["mode"]) == ("completed", "It is 1500.", "rewoo")
    assert models_asked(product, person, run) == ["planning", "synthesis"]
    tools = [c for c in calls(product, person, run) if c["kind"] == "tool"]
    *products, total = [c["result"]["content"] for c in tools]  # the first two go side by side
    assert (sorted(products), total) == (["2 * 300 = 600", "3 * 300 = 900"], "600 + 900 = 1500")
    told = [e["data"] for e in events(product, person, run) if e["channel"] == "plan"]
    assert [step["id"] for step in told[0]["steps"]] == ["E1", "E2", "E3"]
    assert {(d["step_id"], d["status"]) for d in told[1:]} == {
        (f"E{n}", status) for n in (1, 2, 3) for status in ("running", "done")
    }


def test_a_router_chooses_and_the_reason_is_kept_and_told(product: Product, person: Person) -> None:
    product.model.brain = planning(sums("2 * 300"))
    run = ask(product, person, "Compare some things", "auto")
    assert run["mode"] == "auto"
    assert (run["route"]["mode"], run["route"]["reason"]) == ("rewoo", "several lookups are known")
    assert models_asked(product, person, run) == ["routing", "planning", "synthesis"]
    routed = [e["data"] for e in events(product, person, run) if e["data"].get("phase") == "routed"]
    assert routed[0]["reason"] == "several lookups are known"


@pytest.mark.parametrize(
    ("mode", "asked"),
    [
        ("plan_execute", ["planning", "loop", "loop", "loop", "synthesis"]),
        ("dag", ["planning", "loop", "loop", "loop", "analysis", "synthesis"]),
    ],
)
def test_goals_are_worked_on_by_agents_with_tools(
    product: Product, person: Person, mode: str, asked: list[str]
) -> None:
    product.model.brain = planning(goals(("Work out 7 * 300", []), ("Say it", ["s1"])))
    run = ask(product, person, "A goal", mode)
    assert (run["status"], run["answer"]) == ("completed", "All is done.")
    assert models_asked(product, person, run) == asked
    steps = {e["data"].get("step_id") for e in events(product, person, run) if e["channel"] == "step"}
    assert steps == {"s1", "s2"}


def test_a_direct_run_is_one_call_without_tools(product: Product, person: Person) -> None:
    run = ask(product, person, "Hello", "direct")
    assert run["answer"] == "Hello! You wrote: Hello"
    assert models_asked(product, person, run) == ["synthesis"]


def test_a_mode_that_does_not_exist_is_refused(product: Product, person: Person) -> None:
    status, problem = call(product, person, "POST", "/api/v1/runs", {"input": "q", "mode": "magic"})
    assert (status, problem["code"]) == (400, "unknown_mode")
    assert "rewoo" in problem["detail"]


@pytest.fixture
def workflow(product: Product) -> Iterator[None]:
    product.execute(
        "INSERT INTO tools_admin_workflow (agent_id, name, description, pattern, examples, tool_id, template, enabled)"
        " SELECT agent.id, 'sum', 'Works out a sum.', '^how much is (?P<expression>[-+*/ 0-9]+)', '[]', tool.id,"
        " 'That is {result}.', true FROM tools_admin_agent agent, tools_admin_tool tool"
        " WHERE agent.is_default AND tool.name = 'calculator'"
    )
    yield
    product.execute("DELETE FROM tools_admin_workflow")


@pytest.mark.parametrize("mode", ["auto", "direct"])
@pytest.mark.usefixtures("workflow")
def test_a_fixed_workflow_answers_without_any_model(product: Product, person: Person, mode: str) -> None:
    run = ask(product, person, "How much is 12 * 12", mode)
    assert run["answer"] == "That is 12 * 12 = 144."
    assert [c["kind"] for c in calls(product, person, run) if c["kind"] in ("llm", "tool")] == ["tool"]
    assert run["route"]["workflow"] == "sum"


MAKE_HELPER = """
from tools_admin.models import Agent, Tool
made = Agent.objects.create(name="Sums", description="Works out sums.")
made.tools.add(Tool.objects.get(name="calculator"))
Agent.objects.get(is_default=True).delegates.add(made)
"""
CLOSE_HELPER = """
from django.contrib.auth.models import Group
from tools_admin.models import Agent
Agent.objects.get(name="Sums").groups.add(Group.objects.get_or_create(name="Accounting")[0])
"""
END_HELPER = "from tools_admin.models import Agent; Agent.objects.get(name='Sums').delete()"


@pytest.fixture
def helper(product: Product) -> Iterator[None]:
    product.manage("shell", "--no-imports", "-c", MAKE_HELPER)
    yield
    product.manage("shell", "--no-imports", "-c", END_HELPER)


@pytest.mark.usefixtures("helper")
def test_an_agent_can_hand_work_to_another_one(product: Product, person: Person) -> None:
    def brain(request: dict[str, Any]) -> dict[str, Any]:
        names = {tool["function"]["name"] for tool in request.get("tools") or ()}
        if "ask_sums" in names and request["messages"][-1]["role"] == "user":
            return {"calls": [{"name": "ask_sums", "arguments": {"request": "What is 12 * 12?"}}]}
        return think(request)

    product.model.brain = brain
    run = ask(product, person, "Let them work it out", "react")
    tools = [(c["key"], c["request"]["name"]) for c in calls(product, person, run) if c["kind"] == "tool"]
    assert ("react/1/tool/0/agent/react/1/tool/0", "calculator") in tools
    assert "144" in json.dumps(calls(product, person, run))


@pytest.mark.usefixtures("helper")
def test_work_goes_only_to_agents_that_the_person_may_use(product: Product, person: Person) -> None:
    product.manage("shell", "--no-imports", "-c", CLOSE_HELPER)
    offered: list[str] = []

    def brain(request: dict[str, Any]) -> dict[str, Any]:
        offered.extend(tool["function"]["name"] for tool in request.get("tools") or ())
        return think(request)

    product.model.brain = brain
    ask(product, person, "Let them work it out", "react")
    assert "calculator" in offered
    assert "ask_sums" not in offered


@pytest.fixture
def gated(product: Product) -> Iterator[None]:
    product.execute("UPDATE tools_admin_tool SET approval = 'always' WHERE name = 'calculator'")
    yield
    product.execute("UPDATE tools_admin_tool SET approval = 'never' WHERE name = 'calculator'")


def _asked(product: Product, person: Person, question: str, mode: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A run that waits, and its requests."""
    run = call(product, person, "POST", "/api/v1/runs", {"input": question, "mode": mode})[1]
    eventually(lambda: _run(product, person, run["id"])["status"] == "waiting", "the run waits")
    return run, call(product, person, "GET", "/api/v1/approvals")[1]["items"]


def _decided(
    product: Product, person: Person, run: dict[str, Any], asked: dict[str, Any], **decision: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The ended run and its calls of the calculator."""
    assert call(product, person, "POST", f"/api/v1/approvals/{asked['id']}", decision)[0] == 200
    ended = eventually(lambda: (r := _run(product, person, run["id"]))["ended_at"] and r, "the run has ended")
    return ended, [c for c in calls(product, person, run) if c["request"].get("name") == "calculator"]


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ({"decision": "approve"}, "144"),
        ({"decision": "approve", "args": {"expression": "10 * 10"}}, "100"),
        ({"decision": "reject", "comment": "not today"}, "not today"),
    ],
    ids=["approved", "edited", "rejected"],
)
@pytest.mark.usefixtures("helper", "gated")
def test_a_helpers_call_is_decided_like_any_other(
    product: Product, person: Person, decision: dict[str, Any], told: str
) -> None:  # C-42
    def brain(request: dict[str, Any]) -> dict[str, Any]:
        names = {tool["function"]["name"] for tool in request.get("tools") or ()}
        if "ask_sums" in names and request["messages"][-1]["role"] == "user":
            return {"calls": [{"name": "ask_sums", "arguments": {"request": "What is 12 * 12?"}}]}
        return think(request)

    product.model.brain = brain
    run, [asked] = _asked(product, person, "Let them work it out", "react")
    assert asked["arguments"] == {"expression": "12 * 12"}
    before = len(product.model.requests)
    ended, [made] = _decided(product, person, run, asked, **decision)
    assert ended["status"] == "completed"
    assert made["key"] == "react/1/tool/0/agent/react/1/tool/0"
    assert (told in made["result"]["content"], made["result"]["is_error"]) == (True, told == "not today")
    helper, parent = product.model.requests[before : before + 2]
    assert told in helper["messages"][-1]["content"], "the helper goes on where it was"
    assert told in parent["messages"][-1]["content"], "and answers whoever asked it"


@pytest.mark.parametrize("mode", ["react", "rewoo", "plan_execute", "dag", "direct"])
@pytest.mark.usefixtures("workflow", "gated")
def test_no_way_of_working_leads_around_a_persons_word(product: Product, person: Person, mode: str) -> None:  # C-41
    steps = goals(("Work out 12 * 12", [])) if mode in ("plan_execute", "dag") else sums("12 * 12")
    product.model.brain = planning(steps, mode=mode)
    run, _ = _asked(product, person, "How much is 12 * 12", mode)
    assert [c for c in calls(product, person, run) if c["request"].get("name") == "calculator"] == []

    def ended() -> Any:
        for pending in call(product, person, "GET", "/api/v1/approvals")[1]["items"]:  # a new plan asks anew
            call(product, person, "POST", f"/api/v1/approvals/{pending['id']}", {"decision": "reject", "comment": "no"})
        return (found := _run(product, person, run["id"]))["ended_at"] and found

    end = eventually(ended, "the run has ended")
    assert end["status"] in ("completed", "failed") and end["answer"] + end["error"]
    made = [c["result"] for c in calls(product, person, run) if c["request"].get("name") == "calculator"]
    assert {(result["is_error"], "144" in result["content"]) for result in made} == {(True, False)}


def test_a_planned_run_survives_its_worker(product: Product, person: Person) -> None:
    product.model.brain = planning(sums("2 * 300", "3 * 300"), answer="It is 1500.")
    product.model.latency = 1.0
    run = call(product, person, "POST", "/api/v1/runs", {"input": "Add", "mode": "rewoo"})[1]
    eventually(
        lambda: [c for c in calls(product, person, run) if c["kind"] == "tool"], "a step of the plan is on record"
    )
    product.end("worker")
    product.model.latency = 0.0
    product.restore()
    product.model.brain = planning(sums("2 * 300", "3 * 300"), answer="It is 1500.")
    ended = eventually(lambda: (r := _run(product, person, run["id"]))["ended_at"] and r, "the run has ended")
    assert (ended["status"], ended["answer"]) == ("completed", "It is 1500.")
    roles = models_asked(product, person, ended)
    assert roles.count("planning") == 1


def test_a_model_that_is_away_is_waited_for_in_a_planned_run(product: Product, person: Person) -> None:
    product.model.brain = planning(sums("2 * 300"), answer="It is 600.")
    product.model.stop()
    run = call(product, person, "POST", "/api/v1/runs", {"input": "Add", "mode": "rewoo"})[1]
    eventually(lambda: _run(product, person, run["id"])["reason"] == "model_unavailable", "the run waits", 90)
    product.model.start()
    ended = eventually(lambda: (r := _run(product, person, run["id"]))["ended_at"] and r, "the run has ended", 90)
    assert (ended["status"], ended["answer"]) == ("completed", "It is 600.")
