"""Answers that a person signs before they are published: draft and verdict, change, reject, once."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conversations.test_main_job import call
from tests.fake_model import think
from tests.product import Person, Product, eventually

FORM = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, "confidence": {"type": "number", "maximum": 1}},
    "required": ["summary", "confidence"],
    "additionalProperties": False,
}
SIGNS = "UPDATE tools_admin_agent SET sign_off = true WHERE is_default"
RESET = (
    "UPDATE tools_admin_agent SET sign_off = false, evaluates = false, output_schema = '{}', publish_policy = '{}',"
    " publish_tool_id = NULL WHERE is_default"
)


@pytest.fixture
def person(product: Product) -> Iterator[Person]:
    product.execute(SIGNS)
    yield product.person()
    product.execute(RESET)
    product.model.brain = think


def judging(verdict: Any, draft: dict[str, Any] | None = None) -> Any:
    """A model that judges each draft so; `verdict` may be a function of the prompt."""

    def brain(request: dict[str, Any]) -> dict[str, Any]:
        forced = request.get("tool_choice")
        name = forced["function"]["name"] if isinstance(forced, dict) else ""
        if name == "verdict":
            word = verdict(request["messages"][-1]["content"]) if callable(verdict) else verdict
            if word is None:
                return {"status": 400, "error": "no judge today"}
            return {"calls": [{"name": name, "arguments": {"verdict": word, "reasons": [f"It is a {word}."]}}]}
        if name == "draft":
            return {"calls": [{"name": name, "arguments": draft}]}
        return think(request)

    return brain


def waiting(product: Product, person: Person, question: str = "Hello") -> tuple[dict[str, Any], dict[str, Any]]:
    run = call(product, person, "POST", "/api/v1/runs", {"input": question})[1]
    eventually(lambda: state(product, person, run)["status"] == "waiting", "the run waits for a signature")
    (asked,) = call(product, person, "GET", "/api/v1/approvals")[1]["items"]
    return run, asked


def state(product: Product, person: Person, run: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = call(product, person, "GET", f"/api/v1/runs/{run['id']}")[1]
    return found


def ended(product: Product, person: Person, run: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = eventually(
        lambda: (r := state(product, person, run))["ended_at"] and r, "the run has ended"
    )
    return found


def decide(product: Product, person: Person, asked: dict[str, Any], decision: str, **more: Any) -> tuple[int, Any]:
    return call(product, person, "POST", f"/api/v1/approvals/{asked['id']}", {"decision": decision, **more})


def events(product: Product, person: Person, run: dict[str, Any], channel: str) -> list[dict[str, Any]]:
    found = call(product, person, "GET", f"/api/v1/runs/{run['id']}/events")[1]["items"]
    return [event["data"] for event in found if event["channel"] == channel]


@pytest.mark.parametrize("verdict", ["pass", "fail", "needs_human", None])
def test_a_draft_waits_whatever_the_verdict(product: Product, person: Person, verdict: str | None) -> None:  # P-52
    product.model.brain = judging(verdict)
    run, asked = waiting(product, person)
    assert asked["arguments"] == {"answer": "Hello! You wrote: Hello"}
    assert events(product, person, run, "verdict")[0]["verdict"] == (verdict or "needs_human")  # P-51
    assert events(product, person, run, "answer") in ([], [{"status": "done", "attempt": 0}])
    assert state(product, person, run)["answer"] == ""
    assert decide(product, person, asked, "approve")[0] == 200
    assert ended(product, person, run)["answer"] == "Hello! You wrote: Hello"


def test_a_signature_publishes_once(product: Product, person: Person) -> None:  # P-54
    product.model.brain = judging("pass")
    run, asked = waiting(product, person)
    assert [decide(product, person, asked, "approve")[0] for _ in range(2)] == [200, 200]
    ended(product, person, run)
    assert decide(product, person, asked, "approve")[0] == 200
    rows = product.sql("SELECT content FROM conversations_message WHERE run_id = %s AND role = 'assistant'", run["id"])
    assert rows == [("Hello! You wrote: Hello",)]
    assert product.sql("SELECT state FROM conversations_approval WHERE run_id = %s", run["id"]) == [("consumed",)]


def test_a_rejection_ends_the_run(product: Product, person: Person) -> None:  # P-56, known fault 10
    product.model.brain = judging("pass")
    run, asked = waiting(product, person)
    assert decide(product, person, asked, "reject", comment="No.")[0] == 200
    end = ended(product, person, run)
    assert (end["status"], end["reason"], end["answer"]) == ("cancelled", "rejected", "")
    assert decide(product, person, asked, "approve")[0] == 409


def test_a_changed_draft_is_judged_again(product: Product, person: Person) -> None:  # P-54, P-57
    product.model.brain = judging(lambda text: "fail" if "bad" in text else "pass")
    run, asked = waiting(product, person)
    assert decide(product, person, asked, "approve", args={"answer": "A bad change."})[0] == 200

    def again() -> Any:
        found = call(product, person, "GET", "/api/v1/approvals")[1]["items"]
        return found and found[0]

    second = eventually(again, "a changed draft that fails needs a new signature")
    assert second["arguments"] == {"answer": "A bad change."}
    assert decide(product, person, second, "approve", args={"answer": "A good change."})[0] == 200
    assert ended(product, person, run)["answer"] == "A good change."
    assert [v["verdict"] for v in events(product, person, run, "verdict")] == ["pass", "fail", "pass"]


def test_a_draft_has_its_form_and_changes_keep_to_it(product: Product, person: Person) -> None:  # P-55
    product.execute("UPDATE tools_admin_agent SET output_schema = %s WHERE is_default", json.dumps(FORM))
    product.model.brain = judging("pass", {"summary": "All is well.", "confidence": 0.9})
    run, asked = waiting(product, person)
    assert asked["arguments"] == {"summary": "All is well.", "confidence": 0.9}
    status, problem = decide(product, person, asked, "approve", args={"summary": "x", "confidence": 7})
    assert (status, problem["code"]) == (400, "invalid_draft")
    assert decide(product, person, asked, "approve", args={"summary": "So it is.", "confidence": 0.5})[0] == 200
    assert ended(product, person, run)["answer"] == "- **summary:** So it is.\n- **confidence:** 0.5"


def test_what_is_out_of_bounds_cannot_be_signed(product: Product, person: Person) -> None:  # P-57, known fault 11
    schema = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}
    product.execute(
        "UPDATE tools_admin_agent SET output_schema = %s, publish_policy = %s WHERE is_default",
        json.dumps(schema),
        json.dumps({"limits": {"amount": {"max": 100}}}),
    )
    product.model.brain = judging("pass", {"amount": 50})
    run, asked = waiting(product, person)
    for amount in (101, -1):
        status, problem = decide(product, person, asked, "approve", args={"amount": amount})
        assert (status, problem["code"]) == (400, "invalid_draft")
    assert decide(product, person, asked, "approve", args={"amount": 100})[0] == 200
    assert ended(product, person, run)["answer"] == "- **amount:** 100"


def test_a_signed_draft_goes_to_a_tool_once(product: Product, person: Person) -> None:
    schema = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
    product.execute(
        "UPDATE tools_admin_agent SET output_schema = %s, publish_tool_id ="
        " (SELECT id FROM tools_admin_tool WHERE name = 'calculator') WHERE is_default",
        json.dumps(schema),
    )
    product.model.brain = judging("pass", {"expression": "6 * 7"})
    run, asked = waiting(product, person)
    made = call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
    assert [c for c in made if c["kind"] == "tool"] == []
    decide(product, person, asked, "approve")
    assert "6 * 7 = 42" in ended(product, person, run)["answer"]
    made = call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
    assert [c["key"] for c in made if c["kind"] == "tool"] == ["publish/1/tool/0"]


def test_without_a_signature_a_tool_that_asks_first_still_asks(product: Product, person: Person) -> None:
    product.execute(RESET)
    schema = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
    product.execute(
        "UPDATE tools_admin_agent SET output_schema = %s, publish_policy = %s, publish_tool_id ="
        " (SELECT id FROM tools_admin_tool WHERE name = 'calculator') WHERE is_default",
        json.dumps(schema),
        json.dumps({"allowed": {"expression": ["6 * 7"]}}),
    )
    product.execute("UPDATE tools_admin_tool SET approval = 'always' WHERE name = 'calculator'")
    try:
        product.model.brain = judging("pass", {"expression": "6 * 7"})
        run, asked = waiting(product, person)
        assert (asked["tool_name"], asked["arguments"]) == ("calculator", {"expression": "6 * 7"})
        decide(product, person, asked, "approve")
        assert "6 * 7 = 42" in ended(product, person, run)["answer"]
        run, asked = waiting(product, person)
        decide(product, person, asked, "approve", args={"expression": "7 * 7"})
        answer = ended(product, person, run)["answer"]
        assert "49" not in answer, "what is out of bounds goes nowhere, whoever approves of it"
        assert "out of bounds" in answer
    finally:
        product.execute("UPDATE tools_admin_tool SET approval = 'never' WHERE name = 'calculator'")


def test_an_answer_can_be_judged_without_being_held_back(product: Product, person: Person) -> None:
    product.execute(RESET)
    product.execute("UPDATE tools_admin_agent SET evaluates = true WHERE is_default")
    product.model.brain = judging("fail")
    run = call(product, person, "POST", "/api/v1/runs", {"input": "Hello", "wait": 20})[1]
    assert run["answer"] == "Hello! You wrote: Hello"
    assert events(product, person, run, "verdict") == [{"verdict": "fail", "reasons": ["It is a fail."]}]
