"""Comparisons of routes: rows for each attempt, a worker that may die, budgets, the page, the command."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Budget, User
from agentapp.database import in_thread
from agentapp.engine.comparison import TaskSet, read_yaml
from conversations.balances import balances
from conversations.comparison import running, services
from conversations.models import Comparison, ComparisonAttempt
from conversations.permission import Permissions, Permit
from tests.factories import make_user
from tests.fake_model import think
from tests.product import Product, eventually
from tools_admin.clients import ModelClients
from tools_admin.models import Agent, Tool

ONE = """
name: One
tasks:
  - id: sum
    question: What is 2 + 2?
    grader: number
    expected: 4
    script:
      calls: [{tool: calculator, arguments: {expression: 2 + 2}}]
      answer: It is {1}.
"""


@pytest.fixture
def ada(db: None) -> User:
    return make_user("ada", is_superuser=True, is_staff=True)


@pytest.fixture
def committed(transactional_db: None) -> None:
    """For a test in which several connections look at the rows."""


class Permitted(Permissions):
    """What the rows of this test's transaction allow: another connection would not see them."""

    async def of_tool(self, user_id: int, agent_id: int | None, tool_name: str) -> Permit | None:
        return Permit(False, 0, False)


@pytest.fixture(autouse=True)
def one_transaction(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The worker's threads work in the transaction of the test, unless the test wants it otherwise."""
    if {"committed", "product"} & set(request.fixturenames):
        yield
        return
    request.getfixturevalue("db")
    own = connections["default"]

    def with_own(work: Any, *arguments: Any) -> Any:
        connections["default"] = own
        return work(*arguments)

    async def here(work: Any, *arguments: Any) -> Any:
        return await asyncio.to_thread(with_own, work, *arguments)

    monkeypatch.setattr(running, "patiently", here)
    monkeypatch.setattr(running, "in_thread", here)
    own.inc_thread_sharing()
    yield
    own.dec_thread_sharing()


def one_task() -> TaskSet:
    return read_yaml(ONE)


def work(comparison: Comparison) -> Comparison:
    """As a worker does it, in this process."""

    asyncio.run(running.execute(comparison.id, ModelClients(), Permitted()))
    comparison.refresh_from_db()
    return comparison


def start(user: User, **options: Any) -> Comparison:
    return services.start_comparison(user, options.pop("task_set", one_task()), scripted=True, **options)


def test_each_task_goes_through_each_route_as_often_as_asked(ada: User) -> None:
    done = work(start(ada, repeats=2))
    assert done.status == "completed"
    places = {(a.task, a.route, a.repeat): a.outcome for a in done.attempts.all()}
    assert len(places) == len(services.ROUTES) * 2
    assert {places["sum", route, 1] for route in services.ROUTES if route != "direct"} == {"completed"}
    assert places["sum", "direct", 1] == "declined"


def test_an_attempt_keeps_what_was_asked_and_found(ada: User) -> None:
    attempt = work(start(ada, routes=["react"], repeats=1)).attempts.get()
    assert attempt.answer == "It is 4."
    assert (attempt.model_calls, attempt.tool_calls) == (3, 1)
    assert {call["name"] for call in attempt.trace} == {"scripted", "calculator"}
    assert attempt.input_tokens > 100 and attempt.ended_at is not None


def test_a_delegation_counts_parent_and_child(ada: User) -> None:
    """P-7."""
    done = work(start(ada, routes=["react", "delegation"], repeats=1))
    alone, delegated = done.attempts.get(route="react"), done.attempts.get(route="delegation")
    assert delegated.model_calls > alone.model_calls
    assert delegated.input_tokens > alone.input_tokens


def test_a_tool_that_may_change_something_is_not_run(ada: User) -> None:
    Tool.objects.filter(name="calculator").update(effect_class="once", approval="never")
    attempt = work(start(ada, routes=["react"], repeats=1)).attempts.get()
    assert attempt.outcome in ("declined", "failed")
    assert attempt.tool_calls == 0


def test_what_a_dead_worker_left_counts_and_is_made_anew(ada: User) -> None:
    comparison = start(ada, routes=["react"], repeats=1)
    claimed = services.claim(comparison.id)
    assert claimed is not None
    running._begin(claimed, "sum", "react", 1)
    assert services.claim(comparison.id) is None, "somebody works on it"
    Comparison.objects.update(lease_expires_at=timezone.now())
    assert services.due() == [comparison.id]
    done = work(comparison)
    assert sorted(done.attempts.values_list("outcome", flat=True)) == ["broken_off", "completed"]
    with pytest.raises(running.Lost):
        running._begin(claimed, "sum", "react", 1)


def test_a_task_that_kills_its_worker_is_left_after_three_times(ada: User) -> None:
    comparison = start(ada, routes=["react", "rewoo"], repeats=1)
    for _ in range(running.MOST_BROKEN_OFF):
        claimed = services.claim(comparison.id)
        assert claimed is not None
        running._begin(claimed, "sum", "react", 1)
        Comparison.objects.update(lease_expires_at=timezone.now())
    done = work(comparison)
    assert done.status == "completed"
    assert set(done.attempts.filter(route="react").values_list("outcome", flat=True)) == {"broken_off"}
    assert done.attempts.get(route="rewoo").outcome == "completed"


def test_a_queued_comparison_stops_at_once(ada: User) -> None:
    comparison = start(ada)
    services.request_stop(comparison)
    comparison.refresh_from_db()
    assert comparison.status == "stopped"
    assert work(comparison).attempts.count() == 0


@pytest.mark.usefixtures("committed")
def test_a_stop_breaks_off_what_is_going_on(ada: User, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RUN_HEARTBEAT_SECONDS = 0.05
    comparison = start(ada, routes=["react"])

    async def for_ever(*_: Any, **__: Any) -> None:
        await in_thread(services.request_stop, comparison)
        await asyncio.Event().wait()

    monkeypatch.setattr(running, "attempt", for_ever)
    done = work(comparison)
    assert done.status == "stopped"
    assert [a.outcome for a in done.attempts.all()] == ["broken_off"]


def test_a_worker_that_is_asked_to_go_puts_it_back(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = start(ada, routes=["react"], repeats=1)

    async def run() -> None:
        begun = asyncio.Event()

        async def for_ever(*_: Any, **__: Any) -> None:
            begun.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(running, "attempt", for_ever)
        job = asyncio.create_task(running.execute(comparison.id, ModelClients(), Permitted()))
        await begun.wait()
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    asyncio.run(run())
    comparison.refresh_from_db()
    assert (comparison.status, comparison.lease_expires_at) == ("queued", None)
    assert [a.outcome for a in comparison.attempts.all()] == ["broken_off"]


def test_budgets_pay_and_end_it(ada: User) -> None:
    budget = Budget.objects.create(user=ada, unit="tokens", limit=3_000)
    done = work(start(ada, routes=["react"], repeats=20))
    budget.refresh_from_db()
    assert done.status == "failed" and "3,000" in done.reason.replace(".", ",")
    assert budget.used >= 3_000
    assert [(b.used, b.recorded) for b in balances()] == [(budget.used, budget.used)]
    assert 1 < done.attempts.count() < 20


@pytest.mark.parametrize("what", [User.objects, Agent.objects])
def test_a_disabled_person_or_agent_ends_it(ada: User, what: Any) -> None:
    comparison = start(ada)
    what.update(**{"is_active" if what.model is User else "enabled": False})
    done = work(comparison)
    assert (done.status, done.attempts.count()) == ("failed", 0)
    assert "disabled" in done.reason


def test_what_no_column_takes_does_not_end_a_comparison(ada: User) -> None:
    hostile = read_yaml(ONE.replace("It is {1}.", '"4 \\0 {1}"').replace("2 + 2}", '"2 + \\0 2"}'))
    attempt = work(start(ada, task_set=hostile, routes=["react"], repeats=1)).attempts.get()
    assert attempt.ended_at is not None and "\0" not in attempt.answer


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"routes": ["magic"]}, "magic"),
        ({"routes": []}, "route"),
        ({"repeats": 0}, "20"),
        ({"faults": "fire"}, "fire"),
        ({"task_set": read_yaml("tasks: [{question: q, grader: exact, expected: a}]")}, "script"),
        ({"task_set": read_yaml(ONE.replace("grader: number", "grader: judge"))}, "judge"),
        ({"task_set": read_yaml(ONE.replace("tool: calculator", "tool: abacus"))}, "abacus"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_word(ada: User, options: dict[str, Any], word: str) -> None:
    with pytest.raises(services.BadComparison, match=word):
        start(ada, **options)


def test_one_fault_for_all_tasks(ada: User) -> None:
    done = work(start(ada, routes=["react", "rewoo"], repeats=1, faults="error"))
    assert {(a.fault, a.recovery) for a in done.attempts.all()} == {("error", "recovered")}


# The page


@pytest.fixture
def page(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def address(name: str, *values: Any) -> str:
    return reverse(f"admin:conversations_comparison_{name}", args=values)


FORM = {
    "chosen_routes": ["react", "rewoo"],
    "repeats": "1",
    "faults": "own",
    "scripted": "on",
    "tokens": "100000",
    "seconds": "300",
}


def test_a_comparison_is_started_and_read_in_the_admin(page: Client) -> None:
    file = SimpleUploadedFile("sums.yaml", ONE.encode())
    answer = page.post(address("add"), {**FORM, "task_file": file})
    comparison = Comparison.objects.get()
    assert answer["Location"] == address("change", comparison.pk)
    assert "No attempt has begun yet" in page.get(answer["Location"]).content.decode()
    work(comparison)
    text = page.get(answer["Location"]).content.decode()
    assert "Plan all calls" in text and "100 %" in text
    attempt = comparison.attempts.first()
    assert attempt is not None
    assert "2 + 2" in page.get(address("attempt", attempt.pk)).content.decode()


def test_a_file_with_a_mistake_is_refused_with_line_and_field(page: Client) -> None:
    file = SimpleUploadedFile("sums.yaml", ONE.replace("grader: number", "grader: guess").encode())
    text = page.post(address("add"), {**FORM, "task_file": file}).content.decode()
    assert "Line 6, field `grader`" in text
    assert not Comparison.objects.exists()


def test_two_comparisons_of_the_same_tasks_stand_beside_each_other(
    page: Client, ada: User, django_assert_max_num_queries: Any
) -> None:
    first, second = (work(start(ada, routes=["react", "rewoo"], repeats=1)) for _ in range(2))
    other = work(start(ada, task_set=read_yaml(ONE.replace("2 + 2?", "two and two?")), routes=["react"]))
    with django_assert_max_num_queries(16):
        answer = page.get(address("change", first.pk), {"beside": str(second.pk)})
    assert {row.route for row in answer.context["differences"]} == {"Step by step", "Plan all calls"}
    assert [one.pk for one in answer.context["others"]] == [second.pk]
    assert page.get(address("change", first.pk), {"beside": str(other.pk)}).context["differences"] == []


def test_a_comparison_is_taken_away_as_csv_and_json(page: Client, ada: User) -> None:
    comparison = work(start(ada, repeats=1))
    ComparisonAttempt.objects.update(answer="=1+1")
    lines = page.get(address("export", comparison.pk, "csv")).content.decode().splitlines()
    assert len(lines) == 1 + len(services.ROUTES) and "'=1+1" in lines[1]
    data = json.loads(page.get(address("export", comparison.pk, "json")).content)
    assert {one["route"] for one in data["figures"]} == set(services.ROUTES)
    assert page.get(address("export", comparison.pk, "exe")).status_code == 404


def test_only_whoever_configures_sees_and_stops_comparisons(client: Client, ada: User) -> None:
    comparison = start(ada)
    client.force_login(make_user("auditor", is_staff=True))
    assert client.get(address("change", comparison.pk)).status_code == 404
    assert client.post(address("stop", comparison.pk)).status_code == 404
    assert client.get(address("add")).status_code == 403
    comparison.refresh_from_db()
    assert comparison.stop_requested_at is None and comparison.is_active


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("missing.yaml",), "missing.yaml"),
        (("--export", "x.xls"), "csv"),
        (("--agent", "Nobody"), "Nobody"),
        (("--model", "no-model"), "no-model"),
        (("--user", "nobody"), "nobody"),
        (("--routes", "fast"), "fast"),
    ],
)
def test_the_command_says_what_is_wrong(ada: User, arguments: tuple[str, ...], word: str) -> None:
    with pytest.raises(CommandError, match=word):
        call_command("compare_routes", *arguments)


# A real worker


@pytest.fixture
def comparing(product: Product) -> Iterator[Product]:
    yield product
    product.execute("DELETE FROM conversations_comparison_payers")
    product.execute("DELETE FROM conversations_comparisonattempt")
    product.execute("DELETE FROM conversations_comparison")


def test_the_starter_set_runs_in_a_worker_through_a_kill(comparing: Product, tmp_path: Path) -> None:
    product, person = comparing, comparing.person(staff=True)
    product.manage("shell", "--no-imports", "-c", START.format(user=person.id))
    count = "SELECT count(*) FROM conversations_comparisonattempt WHERE outcome <> 'running'"
    eventually(lambda: product.sql(count)[0][0] > 5, "some attempts have ended")
    product.end("worker")
    product.restore()
    ended = "SELECT status FROM conversations_comparison WHERE ended_at IS NOT NULL"
    assert eventually(lambda: product.sql(ended), "the comparison has ended") == [("completed",)]
    whole = count.replace("<> 'running'", "NOT IN ('running', 'broken_off')")
    assert product.sql(whole)[0][0] == 30 * 6


def test_the_command_waits_and_prints_the_most_complete_route_first(comparing: Product, tmp_path: Path) -> None:
    sums, export = tmp_path / "sums.yaml", tmp_path / "out.csv"
    sums.write_text(ONE)
    arguments = (
        "--model",
        "scripted",
        "--repeats",
        "1",
        "--export",
        str(export),
        "--user",
        comparing.person(staff=True).username,
    )
    printed = comparing.manage("compare_routes", str(sums), *arguments)
    routes = [line.split()[0] for line in printed.splitlines() if "%" in line]
    assert routes[-1] == "direct" and len(routes) == len(services.ROUTES)
    assert "fewer calls, but it completed less" in printed
    assert len(export.read_text().splitlines()) == 1 + len(services.ROUTES)


JUDGED = """
tasks:
  - question: What is 2 * 300?
    grader: judge
    expected: six hundred
"""


def test_a_real_model_is_paid_and_judges_answers_that_no_code_can(comparing: Product, tmp_path: Path) -> None:
    def brain(request: dict[str, Any]) -> Any:
        choice = request.get("tool_choice")
        if isinstance(choice, dict) and choice["function"]["name"] == "grade":
            return {"calls": [{"name": "grade", "arguments": {"right": "600" in str(request["messages"]), "why": ""}}]}
        return think(request)

    product, person, tasks = comparing, comparing.person(staff=True), tmp_path / "judged.yaml"
    product.model.brain = brain
    product.execute("UPDATE tools_admin_languagemodel SET input_price = 1000000, output_price = 1000000")
    tasks.write_text(JUDGED)
    arguments = ("--routes", "react,direct", "--repeats", "1", "--user", person.username)
    printed = product.manage("compare_routes", str(tasks), *arguments)
    product.execute("UPDATE tools_admin_languagemodel SET input_price = 0, output_price = 0")
    assert next(line.split()[:3] for line in printed.splitlines() if "%" in line) == ["react", "1", "100%"]
    query = "SELECT route, cost, input_tokens + output_tokens, judge_cost FROM conversations_comparisonattempt"
    for route, cost, tokens, judged in product.sql(query):
        assert cost == tokens > 0 and judged > 0, route


def test_a_comparison_whose_model_is_away_ends(comparing: Product) -> None:
    product, person = comparing, comparing.person(staff=True)
    product.model.stop()
    product.manage("shell", "--no-imports", "-c", START_REAL.format(user=person.id))
    query = "SELECT status, reason FROM conversations_comparison WHERE ended_at IS NOT NULL"
    [(status, reason)] = eventually(lambda: product.sql(query), "the comparison has ended", 120)
    assert status == "failed" and "could not be reached in 5 attempts" in reason
    outcomes = product.sql("SELECT outcome, error FROM conversations_comparisonattempt")
    assert [outcome for outcome, _ in outcomes] == ["failed"] * 5
    assert all(error for _, error in outcomes)


START = """
from accounts.models import User
from conversations.comparison import services
services.start_comparison(
    User.objects.get(pk={user}),
    services.read_task_set(services.STARTER.read_text(), "tasks.yaml"),
    scripted=True,
    repeats=1,
)
"""
START_REAL = START.replace("scripted=True", "routes=['direct']")
