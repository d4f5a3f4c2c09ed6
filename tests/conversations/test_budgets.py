"""Budgets on the running product: what is spent, what is refused, what is left when a worker dies."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conversations.test_main_job import call
from tests.fake_model import think
from tests.product import Person, Product, eventually

# A call of the model: 100 tokens in, a few out (tests.fake_model); 1 USD for a million in, 10 for a million out.
SET_PRICES = "UPDATE tools_admin_languagemodel SET input_price = %s, output_price = %s, max_output_tokens = %s"

BUSY = {"status": 503, "error": "busy"}


@pytest.fixture
def person(product: Product) -> Iterator[Person]:
    product.execute(SET_PRICES, 1_000_000, 10_000_000, 200)
    yield product.person()
    product.execute(SET_PRICES, 0, 0, 4_096)


def give_budget(product: Product, person: Person, limit: int, unit: str = "cost", **fields: Any) -> None:
    columns = {"user_id": person.id, "unit": unit, "limit": limit, "period": "month", "warn_percent": 80}
    columns |= {"used": 0, "warned": False, "period_start": "now", **fields}
    names = ", ".join(f'"{name}"' for name in columns)
    marks = ", ".join(["%s"] * len(columns))
    product.execute(f"INSERT INTO accounts_budget ({names}) VALUES ({marks})", *columns.values())  # noqa: S608


def used(product: Product, person: Person) -> int:
    ((amount,),) = product.sql("SELECT used FROM accounts_budget WHERE user_id = %s", person.id)
    return int(amount)


def ask(product: Product, person: Person, text: str, wait: float = 30) -> dict[str, Any]:
    run: dict[str, Any] = call(product, person, "POST", "/api/v1/runs", {"input": text, "wait": wait})[1]
    return run


def test_every_call_and_run_has_its_cost(product: Product, person: Person) -> None:
    run = ask(product, person, "What is 12 * 13?")
    calls = call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
    paid = [c for c in calls if c["kind"] == "llm"]
    assert [c["key"] for c in paid] == ["react/1/llm", "react/2/llm", "answer/llm/0"]
    assert all(c["cost"] == c["usage"]["input_tokens"] + 10 * c["usage"]["output_tokens"] > 100 for c in paid)
    assert run["cost"] == sum(c["cost"] for c in calls)
    (done,) = product.sql("SELECT data FROM conversations_runevent WHERE run_id = %s AND channel = 'done'", run["id"])
    assert done[0]["cost"] == run["cost"]


def test_a_run_returns_what_it_did_not_spend(product: Product, person: Person) -> None:
    give_budget(product, person, 1_000_000)
    run = ask(product, person, "What is 12 * 13?")
    assert run["status"] == "completed"
    assert used(product, person) == run["cost"] > 0


def test_fifty_runs_at_once_cannot_overdraw_a_budget_for_ten(product: Product, person: Person) -> None:
    one = ask(product, person, "What is 12 * 13?")["cost"]
    product.execute(SET_PRICES, 1_000_000, 10_000_000, 20)  # what a call sets aside is close to what it takes
    limit = 10 * one
    give_budget(product, person, limit)
    product.model.latency = 0.05
    try:
        with ThreadPoolExecutor(50) as pool:
            runs = list(pool.map(lambda _: ask(product, person, "What is 12 * 13?", 60), range(50)))
    finally:
        product.model.latency = 0.0
    reasons = Counter((run["status"], run["reason"]) for run in runs)
    assert set(reasons) == {("completed", "final_answer"), ("completed", "limit:budget")}
    assert all(run["answer"] for run in runs)
    spent = sum(run["cost"] for run in runs)
    assert spent == used(product, person) <= limit
    assert reasons["completed", "final_answer"] >= 5, f"{reasons}, {spent} of {limit}"


@pytest.mark.parametrize("unit", ["cost", "tokens"])
def test_a_used_up_budget_ends_a_run_with_words(product: Product, person: Person, unit: str) -> None:
    give_budget(product, person, 10, unit)
    run = ask(product, person, "What is 12 * 13?")
    assert (run["status"], run["reason"], run["cost"]) == ("completed", "limit:budget", 0)
    assert person.username in run["answer"]
    assert "begins anew" in run["answer"]
    assert used(product, person) == 0


@pytest.mark.parametrize("mode", ["auto", "direct", "rewoo", "plan_execute", "dag"])
def test_a_used_up_budget_ends_every_way_of_working(product: Product, person: Person, mode: str) -> None:
    give_budget(product, person, 10)
    body = {"input": "What is 12 * 13?", "mode": mode, "wait": 30}
    run = call(product, person, "POST", "/api/v1/runs", body)[1]
    assert (run["status"], run["reason"], run["cost"]) == ("completed", "limit:budget", 0)
    assert run["answer"]
    assert used(product, person) == 0


def test_a_share_is_kept_for_a_last_answer_without_tools(product: Product, person: Person) -> None:
    def uses_tools_for_ever(request: dict[str, Any]) -> dict[str, Any]:
        if request.get("tools"):
            return {"calls": [{"name": "calculator", "arguments": {"expression": f"{len(request['messages'])} + 1"}}]}
        return {"text": "That is what I have."}

    product.model.brain = uses_tools_for_ever
    give_budget(product, person, 9_000)
    run = ask(product, person, "What is 12 * 13?")
    assert (run["status"], run["reason"], run["answer"]) == ("completed", "limit:budget", "That is what I have.")
    assert run["cost"] == used(product, person) <= 9_000


def test_a_tool_has_a_price_and_a_refused_call_costs_nothing(product: Product, person: Person) -> None:
    product.execute("UPDATE tools_admin_tool SET price = 5000 WHERE name = 'calculator'")
    try:
        give_budget(product, person, 1_000_000)
        run = ask(product, person, "What is 12 * 13?")
        calls = call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
        assert [c["cost"] for c in calls if c["kind"] == "tool"] == [5_000]
        assert run["cost"] == 5_000 + sum(c["cost"] for c in calls if c["kind"] == "llm") == used(product, person)
        wrong = ask(product, person, "Use an unknown tool")
        calls = call(product, person, "GET", f"/api/v1/runs/{wrong['id']}/calls")[1]["items"]
        assert {c["cost"] for c in calls if c["kind"] == "tool"} == {0}
    finally:
        product.execute("UPDATE tools_admin_tool SET price = 0")


def test_a_stopped_call_counts_as_what_was_set_aside_for_it(product: Product, person: Person) -> None:
    give_budget(product, person, 1_000_000)
    product.model.token_delay = 0.05
    asked = len(product.model.requests)
    run = ask(product, person, "Tell a long story", 0)
    eventually(lambda: len(product.model.requests) > asked, "the model is asked")
    assert call(product, person, "POST", f"/api/v1/runs/{run['id']}/cancel")[0] == 200
    ended = eventually(lambda: _ended(product, person, run), "the run has ended")
    (stopped,) = call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
    assert stopped["usage"]["estimated"] is True
    assert stopped["cost"] == ended["cost"] == used(product, person) > 2_000


@pytest.mark.parametrize(("fault", "paid"), [({"text": "Hello to you", "breaks_off": 1}, True), (BUSY, False)])
def test_each_attempt_at_a_call_is_on_record_and_paid_for_if_the_model_worked(
    product: Product, person: Person, fault: dict[str, Any], paid: bool
) -> None:
    give_budget(product, person, 1_000_000)
    faults = [fault]
    product.model.brain = lambda request: faults.pop() if faults else think(request)
    run = ask(product, person, "Hello")
    assert run["status"] == "completed"
    calls = call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
    (lost,) = [c for c in calls if "/failed/" in c["key"]]
    assert (lost["state"], lost["cost"] > 2_000, "estimated" in lost["usage"]) == ("failed", paid, paid)
    assert lost["error"]
    assert run["cost"] == sum(c["cost"] for c in calls) == used(product, person) > 0


def test_what_a_dead_worker_left_open_counts_as_spent(product: Product, person: Person) -> None:
    give_budget(product, person, 1_000_000)
    product.model.token_delay = 5.0
    asked = len(product.model.requests)
    run = ask(product, person, "What is 12 * 13?", 0)
    eventually(lambda: len(product.model.requests) > asked, "the model is asked")
    product.end("worker")
    product.restore()
    ended = eventually(lambda: _ended(product, person, run), "another worker has ended the run")
    calls = call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
    (lost,) = [c for c in calls if c["key"].startswith("lost/")]
    assert lost["usage"]["estimated"] is True
    assert lost["cost"] >= 100 + 120  # what the call that was lost did cost
    assert ended["cost"] == sum(c["cost"] for c in calls) == used(product, person)
    assert "cover what was spent" in product.manage("check_budgets")


def test_a_disabled_model_is_not_called_again(product: Product, person: Person) -> None:
    """The run takes another one and goes on."""
    product.execute("""
        INSERT INTO tools_admin_languagemodel SELECT * FROM json_populate_record(NULL::tools_admin_languagemodel, (
            SELECT (to_jsonb(m) || '{"id": 4711, "name": "other-model", "is_default": false}')::json
            FROM tools_admin_languagemodel m WHERE name = 'fake-model'))""")

    def disables_itself(request: dict[str, Any]) -> dict[str, Any]:
        product.execute("UPDATE tools_admin_languagemodel SET enabled = false WHERE name = 'fake-model'")
        return think(request)

    product.model.brain = disables_itself
    try:
        asked = len(product.model.requests)
        run = ask(product, person, "What is 12 * 13?")
        assert (run["status"], run["answer"]) == ("completed", "The result is 156.")
        models = [request["model"] for request in product.model.requests[asked:]]
        assert models == ["fake-model", "other-model", "other-model"]
    finally:
        product.execute("UPDATE tools_admin_languagemodel SET enabled = true")
        product.execute("DELETE FROM tools_admin_languagemodel WHERE id = 4711")


def test_a_disabled_person_costs_nothing_more(product: Product, person: Person) -> None:
    def disables_the_person(request: dict[str, Any]) -> dict[str, Any]:
        product.execute("UPDATE accounts_user SET is_active = false WHERE id = %s", person.id)
        return think(request)

    product.model.brain = disables_the_person
    asked = len(product.model.requests)
    run = ask(product, person, "What is 12 * 13?", 0)
    query = "SELECT status, reason FROM conversations_run WHERE id = %s AND ended_at IS NOT NULL"
    assert eventually(lambda: product.sql(query, run["id"]), "the run has ended") == [("failed", "user_disabled")]
    assert len(product.model.requests) == asked + 1


def test_a_disabled_tool_is_refused_with_the_next_call(product: Product, person: Person) -> None:
    def disables_the_tool(request: dict[str, Any]) -> dict[str, Any]:
        product.execute("UPDATE tools_admin_tool SET enabled = false WHERE name = 'calculator'")
        return think(request)

    product.model.brain = disables_the_tool
    try:
        run = ask(product, person, "What is 12 * 13?")
        calls = call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"]
        (tool,) = [c for c in calls if c["kind"] == "tool"]
        assert "not available any more" in tool["error"]
    finally:
        product.execute("UPDATE tools_admin_tool SET enabled = true WHERE name = 'calculator'")


def _ended(product: Product, person: Person, run: dict[str, Any]) -> dict[str, Any] | None:
    found: dict[str, Any] = call(product, person, "GET", f"/api/v1/runs/{run['id']}")[1]
    return found if found["ended_at"] else None
