"""Tools that need their run, in the real worker: files, search in one's own conversations, servers that ask."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conversations.test_main_job import call
from tests.conversations.test_questions import answer, ended
from tests.fake_model import think
from tests.product import Person, Product, eventually
from tests.tools_admin.connectors.mcp.conftest import everything_over_http
from tests.tools_admin.connectors.mcp.web_server import McpOnTheWeb

ADD = """INSERT INTO tools_admin_agent_tools (agent_id, tool_id)
    SELECT a.id, t.id FROM tools_admin_agent a, tools_admin_tool t WHERE a.is_default AND t.name = '{}'"""
REMOVE = "DELETE FROM tools_admin_agent_tools WHERE tool_id = (SELECT id FROM tools_admin_tool WHERE name = '{}')"


@pytest.fixture
def person(product: Product) -> Iterator[Person]:
    """Somebody whose agent calls what the message says: `call NAME {JSON}`."""

    def brain(request: dict[str, Any]) -> dict[str, Any]:
        last = request["messages"][-1]
        if last["role"] == "user" and str(last["content"]).startswith("call ") and request.get("tools"):
            _, name, arguments = last["content"].split(" ", 2)
            return {"calls": [{"name": name, "arguments": json.loads(arguments)}]}
        return {"text": "Done."}

    names = ("make_file", "search_conversations")
    for name in names:
        product.execute(ADD.format(name))
    product.model.brain = brain
    yield product.person()
    product.model.brain = think
    for name in names:
        product.execute(REMOVE.format(name))


def run_tool(product: Product, person: Person, name: str, **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The run, and the recorded result of its call."""
    said = {"input": f"call {name} {json.dumps(arguments)}"}
    run = ended(product, person, call(product, person, "POST", "/api/v1/runs", said)[1])
    (done,) = [
        c for c in call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"] if c["kind"] == "tool"
    ]
    return run, done["result"]


def fetch(product: Product, person: Person, path: str) -> Any:
    request = urllib.request.Request(product.url + path, headers=person.bearer)  # noqa: S310 - loopback
    return urllib.request.urlopen(request)  # noqa: S310 - loopback


PAGE = "<h1>Hi</h1><script>document.title = 'run'</script>"


def test_a_file_is_given_to_its_person_and_nothing_in_it_runs(product: Product, person: Person) -> None:
    _, result = run_tool(product, person, "make_file", filename="../../etc/report.html", content=PAGE)
    (file,) = result["artifacts"]
    assert (file["filename"], file["content_type"], file["size"]) == ("report.html", "text/html", len(PAGE))
    assert "data" not in file  # the bytes are on disk, the record is small
    with fetch(product, person, f"/api/v1/artifacts/{file['id']}") as response:
        headers = response.headers
        assert response.read().decode() == PAGE
    assert headers["Content-Disposition"] == 'attachment; filename="report.html"'
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in headers["Content-Security-Policy"]
    stranger = product.person()
    assert call(product, stranger, "GET", f"/api/v1/artifacts/{file['id']}")[0] == 404


def test_only_texts_are_made(product: Product, person: Person) -> None:
    for name in ("x.svg", "x.exe", "x.png", "..", "/"):
        _, result = run_tool(product, person, "make_file", filename=name, content="x")
        assert result["is_error"], name


def test_only_ones_own_conversations_are_searched(product: Product, person: Person) -> None:
    for somebody in (person, product.person()):
        ended(product, somebody, call(product, somebody, "POST", "/api/v1/runs", {"input": "The flamingo fund."})[1])
    _, result = run_tool(product, person, "search_conversations", words="flamingo fund")
    assert len(result["content"].splitlines()) == 1
    assert "You: flamingo fund" in result["content"]
    _, result = run_tool(product, person, "search_conversations", words="zebra' & | !( :* --")
    assert "Nothing was found" in result["content"]


MAKE = """
from tools_admin.models import Agent, Connector, Tool
connector = Connector.objects.create(kind="mcp", name="Everything", settings={{"base_url": "{url}"}}, inner=True)
for key, name in (("trigger-elicitation-request", "every_ask"), ("get-tiny-image", "every_image")):
    tool = Tool.objects.create(connector=connector, key=key, name=name, description="x", effect_class="read",
        parameters={{"type": "object", "properties": {{}}}}, definition={{"effect": "once"}}, timeout=5)
    Agent.objects.get(is_default=True).tools.add(tool)
"""


REMOVE_SERVER = "from tools_admin.models import Connector; Connector.objects.get(kind='mcp').delete()"


@pytest.fixture
def server(product: Product, person: Person) -> Iterator[None]:
    """A server that asks its users, connected; two of its tools are given to the agent."""
    with everything_over_http() as url:
        product.manage("shell", "-c", MAKE.format(url=url))
        yield
        product.manage("shell", "-c", REMOVE_SERVER)


def test_a_picture_of_a_server_becomes_a_file(product: Product, person: Person, server: None) -> None:
    _, result = run_tool(product, person, "every_image")
    (file,) = result["artifacts"]
    with fetch(product, person, f"/api/v1/artifacts/{file['id']}") as response:
        assert response.headers["Content-Type"] == "image/png"
        assert response.read().startswith(b"\x89PNG")


def test_a_server_asks_in_the_middle_of_a_call(product: Product, person: Person, server: None) -> None:
    run = call(product, person, "POST", "/api/v1/runs", {"input": "call every_ask {}"})[1]
    ask = f"/api/v1/runs/{run['id']}/questions"
    (question,) = eventually(lambda: call(product, person, "GET", ask)[1]["items"], "the server asks")
    assert (question["source"], question["state"]) == ("every_ask", "pending")
    assert "name" in question["fields"]["properties"]
    status, problem = answer(product, person, run, question, value={"name": 3})
    assert (status, problem["code"]) == (422, "invalid_answer")
    assert answer(product, person, run, question, value={"name": "Ada"})[0] == 200
    ended(product, person, run)
    (done,) = [
        c for c in call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"] if c["kind"] == "tool"
    ]
    assert "Name: Ada" in done["result"]["content"]


WORKS = """
from tools_admin.models import Agent, Connector, Tool
connector = Connector.objects.create(kind="mcp", name="Web", settings={{"base_url": "{url}"}}, inner=True)
tool = Tool.objects.create(connector=connector, key="works", name="web_works", description="x", effect_class="read",
    parameters={{"type": "object", "properties": {{}}}}, timeout=30)
Agent.objects.get(is_default=True).tools.add(tool)
"""


def test_a_server_tells_how_far_it_is_and_hears_that_the_run_was_stopped(product: Product, person: Person) -> None:
    with McpOnTheWeb() as web:
        web.steps, web.pause = 10_000, 0.05
        product.manage("shell", "-c", WORKS.format(url=web.address))
        try:
            run = call(product, person, "POST", "/api/v1/runs", {"input": "call web_works {}"})[1]
            events = f"/api/v1/runs/{run['id']}/events"

            def told() -> list[dict[str, Any]]:
                steps = [e["data"] for e in call(product, person, "GET", events)[1]["items"] if e["channel"] == "step"]
                return [data for data in steps if data["type"] == "progress"]

            first = eventually(told, "progress is told")[0]
            assert (first["call_id"], first["total"]) == ("react/1/tool/0", 10_000)
            assert first["message"] == f"step {first['done']:.0f}"
            assert call(product, person, "POST", f"/api/v1/runs/{run['id']}/cancel")[0] < 300
            assert ended(product, person, run)["status"] == "cancelled"
            eventually(lambda: web.methods("notifications/cancelled"), "the server hears of the stop")
            asked = next(m["id"] for m in web.said if m["method"] == "tools/call")
            heard = next(m["params"] for m in web.said if m["method"] == "notifications/cancelled")
            assert heard["requestId"] == asked
            assert len(told()) < 20, "now and then, not each of them"
        finally:
            product.manage("shell", "-c", REMOVE_SERVER)
