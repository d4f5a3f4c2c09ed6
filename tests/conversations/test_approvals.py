"""A call that needs a person's word: asked once, decided once, run once, with the arguments that were shown."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conversations.test_main_job import call
from tests.conversations.test_socket import page, send
from tests.fake_model import think
from tests.product import Person, Product, eventually

QUESTION = "What is 12 * 12?"


@pytest.fixture
def person(product: Product) -> Iterator[Person]:
    product.execute("UPDATE tools_admin_tool SET approval = 'always' WHERE name = 'calculator'")
    yield product.person()
    product.execute("UPDATE tools_admin_tool SET approval = 'never' WHERE name = 'calculator'")


def _waiting(product: Product, person: Person) -> tuple[dict[str, Any], dict[str, Any]]:
    """A run that waits, and the request it waits for."""
    run = call(product, person, "POST", "/api/v1/runs", {"input": QUESTION})[1]
    run = eventually(lambda: (r := _get(product, person, run))["status"] == "waiting" and r, "the run waits")
    (approval,) = call(product, person, "GET", "/api/v1/approvals")[1]["items"]
    return run, approval


def _get(product: Product, person: Person, run: dict[str, Any]) -> dict[str, Any]:
    state: dict[str, Any] = call(product, person, "GET", f"/api/v1/runs/{run['id']}")[1]
    return state


def _decide(product: Product, person: Person, approval: dict[str, Any], decision: str, **more: Any) -> Any:
    return call(product, person, "POST", f"/api/v1/approvals/{approval['id']}", {"decision": decision, **more})


def _ended(product: Product, person: Person, run: dict[str, Any]) -> dict[str, Any]:
    ended: dict[str, Any] = eventually(lambda: (r := _get(product, person, run))["ended_at"] and r, "the run has ended")
    return ended


def _tool_calls(product: Product, person: Person, run: dict[str, Any]) -> list[dict[str, Any]]:
    calls = call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
    return [c for c in calls if c["kind"] == "tool"]


def test_an_approved_call_runs_with_what_was_shown_and_without_asking_the_model_again(
    product: Product, person: Person
) -> None:
    run, approval = _waiting(product, person)
    assert (run["reason"], approval["tool_name"], approval["arguments"]) == (
        "approval",
        "calculator",
        {"expression": "12 * 12"},
    )
    assert _tool_calls(product, person, run) == []
    asked = len(product.model.requests)
    product.model.brain = lambda request: (
        {"text": "asked again"}
        if request.get("tools") and request["messages"][-1]["role"] != "tool"
        else think(request)
    )
    assert _decide(product, person, approval, "approve")[0] == 200
    run = _ended(product, person, run)
    assert run["status"] == "completed"
    assert "144" in run["answer"]
    assert product.model.requests[asked]["messages"][-1]["role"] == "tool"
    assert call(product, person, "GET", "/api/v1/approvals?state=consumed")[1]["items"][0]["id"] == approval["id"]


def test_a_rejection_is_told_to_the_model_and_ends_nothing(product: Product, person: Person) -> None:
    run, approval = _waiting(product, person)
    assert _decide(product, person, approval, "reject", comment="not today")[0] == 200
    run = _ended(product, person, run)
    assert run["status"] == "completed"
    (tool_call,) = _tool_calls(product, person, run)
    assert tool_call["result"]["is_error"]
    assert "not today" in tool_call["result"]["content"]


def test_edited_arguments_are_what_runs_and_the_proposed_ones_stay_on_record(product: Product, person: Person) -> None:
    run, approval = _waiting(product, person)
    status, problem = _decide(product, person, approval, "approve", args={"formula": "1"})
    assert (status, problem["code"]) == (422, "invalid_arguments")
    assert _decide(product, person, approval, "approve", args={"expression": "10 * 10"})[0] == 200
    _ended(product, person, run)
    (tool_call,) = _tool_calls(product, person, run)
    assert tool_call["request"]["arguments"] == {"expression": "12 * 12"}
    assert tool_call["request"]["executed_arguments"] == {"expression": "10 * 10"}
    assert "100" in tool_call["result"]["content"]


def test_one_decision_wins(product: Product, person: Person) -> None:
    run, approval = _waiting(product, person)
    assert _decide(product, person, approval, "reject")[0] == 200
    assert _decide(product, person, approval, "reject")[0] == 200
    status, problem = _decide(product, person, approval, "approve")
    assert (status, problem["code"]) == (409, "already_decided")
    _ended(product, person, run)


def test_a_stranger_cannot_decide(product: Product, person: Person) -> None:
    run, approval = _waiting(product, person)
    stranger = product.person()
    assert call(product, stranger, "GET", "/api/v1/approvals")[1]["items"] == []
    assert _decide(product, stranger, approval, "approve")[0] == 404
    assert _get(product, person, run)["status"] == "waiting"


def test_without_a_decision_in_time_the_call_does_not_run(product: Product, person: Person) -> None:
    run, approval = _waiting(product, person)
    product.execute("UPDATE conversations_approval SET expires_at = now() WHERE id = %s", approval["id"])
    run = _ended(product, person, run)
    assert run["status"] == "completed"
    assert _tool_calls(product, person, run)[0]["result"]["is_error"]
    status, problem = _decide(product, person, approval, "approve")
    assert (status, problem["code"]) == (410, "approval_expired")


def test_it_works_after_a_restart_of_everything(product: Product, person: Person) -> None:
    run, approval = _waiting(product, person)
    product.end("worker")
    product.end("web")
    product.restore()
    assert _decide(product, person, approval, "approve")[0] == 200
    assert "144" in _ended(product, person, run)["answer"]


TAKE = """DELETE FROM tools_admin_agent_tools
    WHERE tool_id = (SELECT id FROM tools_admin_tool WHERE name = 'calculator')"""
GIVE = """INSERT INTO tools_admin_agent_tools (agent_id, tool_id)
    SELECT a.id, t.id FROM tools_admin_agent a, tools_admin_tool t WHERE a.is_default AND t.name = 'calculator'"""
SHUT = "UPDATE tools_admin_agent SET enabled = false WHERE is_default"
OPEN = "UPDATE tools_admin_agent SET enabled = true WHERE is_default"
SET = "UPDATE tools_admin_tool SET {} WHERE name = 'calculator'"


@pytest.mark.parametrize(
    ("change", "back", "why"),
    [
        (SET.format("enabled = false"), SET.format("enabled = true"), "no tool named"),
        (SET.format("changed = true"), SET.format("changed = false"), "no tool named"),
        (TAKE, GIVE, "not available any more"),
        (SHUT, OPEN, "not available any more"),
        (
            SET.format("description = description || ' And mails it.'"),
            SET.format("description = replace(description, ' And mails it.', '')"),
            "not what it was when a person was asked",
        ),
    ],
    ids=["disabled", "changed at its source", "taken from the agent", "agent disabled", "described differently"],
)
def test_a_right_that_went_between_request_and_call_is_none(
    product: Product, person: Person, change: str, back: str, why: str
) -> None:
    run, approval = _waiting(product, person)
    product.execute(change)
    try:
        _decide(product, person, approval, "approve")
        run = _ended(product, person, run)
        result = _tool_calls(product, person, run)[0]["result"]
        assert result["is_error"] and why in result["content"]
    finally:
        product.execute(back)


def test_stopping_a_waiting_run_withdraws_its_request(product: Product, person: Person) -> None:
    run, approval = _waiting(product, person)
    assert call(product, person, "POST", f"/api/v1/runs/{run['id']}/cancel")[1]["status"] == "cancelled"
    assert _decide(product, person, approval, "approve")[0] == 409


def test_the_page_sees_the_request_and_decides_it(product: Product, person: Person) -> None:
    with page(product, person) as mine:
        ack = send(mine, QUESTION)
        shown = mine.until(lambda b: b.get("run") == ack["run"] and b.get("channel") == "approval")["data"]
        assert (shown["status"], shown["tool_args"]) == ("pending", {"expression": "12 * 12"})
        mine.until(lambda b: b.get("channel") == "run" and b["data"].get("status") == "waiting" and b.get("seq"))
        mine.send(type="decide", approval=shown["approval_id"], decision="approve")
        assert "144" in mine.ended(ack["run"])["data"]["answer"]
    states = [e["data"]["status"] for e in mine.events if e["channel"] == "approval"]
    assert states == ["pending", "approved"]


def test_a_call_of_unknown_outcome_waits_for_a_person(product: Product, person: Person) -> None:
    product.execute("UPDATE tools_admin_tool SET approval = 'never', effect_class = 'once' WHERE name = 'calculator'")
    try:
        product.model.brain = _slow_after_the_tool(product)
        run = call(product, person, "POST", "/api/v1/runs", {"input": QUESTION})[1]
        eventually(lambda: _tool_calls(product, person, run), "the tool has run")
        product.end("worker")
        # as if the worker had died between the tool's effect and its record
        product.execute(
            "UPDATE conversations_call SET state = 'started', result = NULL, ended_at = NULL "
            "WHERE run_id = %s AND kind = 'tool'",
            run["id"],
        )
        product.execute("DELETE FROM conversations_call WHERE run_id = %s AND key LIKE 'react/2%%'", run["id"])
        product.restore()
        run = eventually(lambda: (r := _get(product, person, run))["status"] == "waiting" and r, "the run waits")
        assert run["reason"] == "reconciliation"
        body = {"call": "react/1/tool/0", "outcome": "done", "result": "144, I looked"}
        assert call(product, person, "POST", f"/api/v1/runs/{run['id']}/resolve", body)[0] == 200
        run = _ended(product, person, run)
        assert run["status"] == "completed"
        assert _tool_calls(product, person, run)[0]["result"]["content"] == "144, I looked"
        assert call(product, person, "POST", f"/api/v1/runs/{run['id']}/resolve", body)[0] == 409
    finally:
        product.execute("UPDATE tools_admin_tool SET effect_class = 'pure' WHERE name = 'calculator'")


def _slow_after_the_tool(product: Product) -> Any:
    def brain(request: dict[str, Any]) -> dict[str, Any]:
        if request["messages"][-1]["role"] == "tool":
            product.model.token_delay = 3.0
        return think(request)

    return brain


def _asks_when_it_writes(product: Product) -> None:
    product.execute(
        "UPDATE tools_admin_tool SET approval = 'writes', effect_class = 'idempotent' WHERE name = 'calculator'"
    )


def _next(product: Product, person: Person, run: dict[str, Any], client_id: str) -> dict[str, Any]:
    """Another question in the same conversation."""
    with page(product, person) as mine:
        return {"id": send(mine, "What is 13 * 13?", client_id, run["conversation"])["run"]}


def test_allowing_covers_further_calls_of_the_tool_in_this_conversation_alone(product: Product, person: Person) -> None:
    _asks_when_it_writes(product)
    try:
        run, approval = _waiting(product, person)
        assert _decide(product, person, approval, "allow")[0] == 200
        run = _ended(product, person, run)
        second = _ended(product, person, _next(product, person, run, "c2"))
        assert (second["status"], "169" in second["answer"]) == ("completed", True)
        known = call(product, person, "GET", "/api/v1/approvals?state=consumed")[1]["items"]
        assert [(a["arguments"], a["comment"]) for a in known if a["run"] == second["id"]] == [
            ({"expression": "13 * 13"}, "Allowed for this conversation.")
        ]
        assert _waiting(product, person)[0]["status"] == "waiting", "another conversation"
        product.execute(SET.format('parameters = parameters || \'{"title": "Another"}\''))
        other = _next(product, person, run, "c4")
        eventually(lambda: _get(product, person, other)["status"] == "waiting", "what it is now was not allowed")
        (asked,) = [a for a in call(product, person, "GET", "/api/v1/approvals")[1]["items"] if a["run"] == other["id"]]
        assert _decide(product, person, asked, "reject")[0] == 200
        _ended(product, person, other)
        product.execute(SET.format("parameters = parameters - 'title'"))
        product.execute("UPDATE tools_admin_tool SET approval = 'always' WHERE name = 'calculator'")
        third = _next(product, person, run, "c3")
        eventually(lambda: _get(product, person, third)["status"] == "waiting", "what asks always asks again")
    finally:
        product.execute(SET.format("effect_class = 'pure', parameters = parameters - 'title'"))


def test_what_asks_each_time_cannot_be_allowed(product: Product, person: Person) -> None:
    _, approval = _waiting(product, person)
    status, body = _decide(product, person, approval, "allow")
    assert (status, "asks each time" in str(body)) == (422, True)
    assert _decide(product, person, approval, "approve")[0] == 200


def test_where_a_group_decides_what_was_allowed_before_asks_again_and_a_member_lets_it_run(
    product: Product, person: Person
) -> None:
    _asks_when_it_writes(product)
    product.execute("INSERT INTO auth_group (name) VALUES ('Finance')")
    try:
        run, approval = _waiting(product, person)
        assert _decide(product, person, approval, "allow")[0] == 200
        run = _ended(product, person, run)
        ((finance,),) = product.sql("SELECT id FROM auth_group WHERE name = 'Finance'")
        product.execute("UPDATE tools_admin_tool SET approvers_id = %s WHERE name = 'calculator'", finance)
        run = _next(product, person, run, "c2")
        eventually(lambda: _get(product, person, run)["status"] == "waiting", "it asks again")
        (asked,) = call(product, person, "GET", "/api/v1/approvals")[1]["items"]
        status, problem = _decide(product, person, asked, "approve")
        assert (status, problem["code"]) == (403, "not_approver")
        member = product.person()
        product.execute("INSERT INTO accounts_user_groups (user_id, group_id) VALUES (%s, %s)", member.id, finance)
        assert _decide(product, member, asked, "approve")[0] == 200
        assert "169" in _ended(product, person, run)["answer"]
    finally:
        product.execute(
            "UPDATE tools_admin_tool SET effect_class = 'pure', approvers_id = NULL WHERE name = 'calculator'"
        )
