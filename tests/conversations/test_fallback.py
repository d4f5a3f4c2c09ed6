"""A route with two endpoints in the whole product: one of them goes away, the answer comes all the same."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conversations.test_main_job import call
from tests.fake_model import FakeModel
from tests.product import Product

ROUTE = """
from pydantic import SecretStr
from tools_admin.models import Agent, LanguageModel, Provider, Route, RouteEntry
route, _ = Route.objects.get_or_create(name="two-endpoints")
route.entries.all().delete()
for position, (name, url) in enumerate({endpoints!r}.items()):
    provider, _ = Provider.objects.update_or_create(name=name, defaults={{"base_url": url, "api_key": SecretStr("k")}})
    model, _ = LanguageModel.objects.get_or_create(provider=provider, name=name)
    RouteEntry.objects.create(route=route, model=model, position=position)
Agent.objects.filter(is_default=True).update(route=route)
"""


@pytest.fixture
def endpoints(product: Product) -> Iterator[dict[str, FakeModel]]:
    both = {name: FakeModel().start() for name in ("first", "second")}
    urls = {name: model.url for name, model in both.items()}
    product.manage("shell", "--no-imports", "-c", ROUTE.format(endpoints=urls))
    yield both
    product.manage(
        "shell",
        "--no-imports",
        "-c",
        "from tools_admin.models import *; Route.objects.get(name='two-endpoints').delete()",
    )
    for model in both.values():
        model.end()


def ask(product: Product, text: str) -> dict[str, Any]:
    _, run = call(product, product.person(), "POST", "/api/v1/runs", {"input": text, "wait": 60})
    return dict(run)


def events(product: Product, run: dict[str, Any], channel: str) -> list[dict[str, Any]]:
    query = "SELECT data FROM conversations_runevent WHERE run_id = %s AND channel = %s ORDER BY seq"
    return [row[0] for row in product.sql(query, run["id"], channel)]


def test_each_answer_says_which_model_which_route_and_why(product: Product, endpoints: dict[str, FakeModel]) -> None:
    run = ask(product, "Hello")
    assert (run["model"]["name"], run["model"]["route"]) == ("first", "two-endpoints")
    assert run["model"]["reason"] == "the first model that fits on the route two-endpoints"
    assert not endpoints["second"].requests


def test_when_the_first_endpoint_is_away_the_second_answers_and_the_run_says_so(
    product: Product, endpoints: dict[str, FakeModel]
) -> None:
    endpoints["first"].stop()
    run = ask(product, "What is 12 * 12?")
    assert (run["status"], run["model"]["name"]) == ("completed", "second")
    assert "144" in run["answer"]
    assert run["model"]["reason"].startswith("stands in for first: connection failed")
    assert [(event["from"], event["to"]) for event in events(product, run, "model")] == [("first", "second")]
    models = [
        row[0]
        for row in product.sql(
            "SELECT result->>'model' FROM conversations_call WHERE run_id = %s AND result ? 'finish_reason'",
            run["id"],
        )
    ]
    assert set(models) == {"second"}


def test_a_key_that_is_refused_goes_to_the_next_at_once(product: Product, endpoints: dict[str, FakeModel]) -> None:
    endpoints["first"].brain = lambda request: {"status": 401, "error": "no such key"}
    run = ask(product, "Hello")
    assert (run["status"], run["model"]["name"]) == ("completed", "second")
    assert len(endpoints["first"].requests) == 1


def test_a_model_that_is_disabled_is_passed_over(product: Product, endpoints: dict[str, FakeModel]) -> None:
    product.execute("UPDATE tools_admin_languagemodel SET enabled = false WHERE name = 'first'")
    try:
        run = ask(product, "Hello")
    finally:
        product.execute("UPDATE tools_admin_languagemodel SET enabled = true WHERE name = 'first'")
    assert run["model"]["name"] == "second"
    assert "first: it is disabled" in run["model"]["reason"]
