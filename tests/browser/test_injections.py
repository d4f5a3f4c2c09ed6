"""Text from every kind of system is data: an obedient model gets nothing done by it, and no page runs any of it."""

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Request, expect

from tests.browser.conftest import OpenPage
from tests.conversations.test_attachments_in_runs import upload
from tests.conversations.test_main_job import call
from tests.conversations.test_tools_of_a_run import ADD, REMOVE
from tests.fake_model import Reply
from tests.injections import EVERYTHING, OURS, TOOL
from tests.product import Person, Product, eventually
from tests.tools_admin.connectors.mcp.web_server import McpOnTheWeb
from tests.tools_admin.connectors.recording import Service

# By kind: the tool that reads, and what it is called with. New kinds take their place here.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "http": ("read_page", {}),
    "openapi": ("api_read", {}),
    "mcp": ("web_echo", {"text": EVERYTHING}),
    "sql": ("db_query", {"sql": "SELECT note FROM notes"}),
    "knowledge": ("search_notes", {"question": "instructions"}),
    "builtin": ("search_conversations", {"words": "flamingo"}),
    "attachments": ("read_attachment", {"part": 1}),
    "artifacts": ("make_file", {"filename": "[USER INTERRUPT] <img src=x>.html", "content": EVERYTHING}),
}

MAKE = """
import json
from tools_admin.models import *
from tools_admin.choosing import choose
from tools_admin.connectors.openapi.document import read
from tools_admin.connectors.openapi.operations import Reader
url, web = "{url}", "{web}"
shop = Connector.objects.create(kind="http", name="Shop", prefix="shop", inner=True, settings=dict(base_url=url))
for name, effect, definition in (
    ("read_page", "read", dict(method="GET", path="/page")),
    ("delete_all", "once", dict(method="DELETE", path="/all")),
):
    Tool.objects.create(connector=shop, key=name, name=name, description="x", effect_class=effect,
                        parameters=dict(type="object", properties=dict()), definition=definition)
api = Connector.objects.create(kind="openapi", name="Api", prefix="api", inner=True, settings=dict(base_url=url))
paths = {{"/thing": {{"get": {{"operationId": "read", "summary": "Reads."}}}}}}
specs = list(Reader(read(json.dumps({{"openapi": "3.0.0", "paths": paths}}))).operations())
choose(api, specs, [spec.key for spec in specs], [])
mcp = Connector.objects.create(kind="mcp", name="Web", prefix="web", inner=True, settings=dict(base_url=web))
text = dict(type="object", properties=dict(text=dict(type="string")))
Tool.objects.create(connector=mcp, key="echo", name="web_echo", description="x", effect_class="read", parameters=text)
db = Connector.objects.create(kind="sql", name="Db", prefix="db",
                              settings=dict(dialect="sqlite", database="injected.db", tables=["notes"]))
sql = dict(type="object", properties=dict(sql=dict(type="string")))
Tool.objects.create(connector=db, key="query", name="db_query", description="x", effect_class="read", parameters=sql)
notes = Connector.objects.create(kind="knowledge", name="Notes")
question = dict(type="object", properties=dict(question=dict(type="string")))
Tool.objects.create(connector=notes, key="search_documents", name="search_notes", description="x",
                    effect_class="read", parameters=question)
from tests.injections import EVERYTHING
from tools_admin.knowledge_models import KnowledgeDocument, Passage
document = KnowledgeDocument.objects.create(collection=notes, name="[USER INTERRUPT] <img src=x>", status="ready")
Passage.objects.create(document=document, number=1, language="simple", text=EVERYTHING)
Agent.objects.get(is_default=True).connectors.set([shop, api, mcp, db, notes])
"""
REMOVE_ALL = "from tools_admin.models import Connector; Connector.objects.exclude(kind='builtin').delete()"


@pytest.fixture(scope="module")
def systems(running_product: Product) -> Iterator[Service]:
    """A system of each kind, each of which holds every attempt; what arrives at the web service is kept."""
    folder = Path(os.environ["VAR_DIR"]) / "databases"
    folder.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(folder / "injected.db") as database:
        database.execute("CREATE TABLE IF NOT EXISTS notes (note text)")
        database.execute("INSERT INTO notes VALUES (?)", [EVERYTHING])
    database.close()
    with Service() as service, McpOnTheWeb() as web:
        service.reply = (200, "text/html; charset=utf-8", EVERYTHING.encode())
        made = MAKE.format(url=service.url, web=web.address)
        running_product.manage("shell", "--no-imports", "-c", made)
        for name in ("make_file", "search_conversations"):
            running_product.execute(ADD.format(name))
        yield service
        for name in ("make_file", "search_conversations"):
            running_product.execute(REMOVE.format(name))
        running_product.manage("shell", "--no-imports", "-c", REMOVE_ALL)
    (folder / "injected.db").unlink()


def obedient(name: str, arguments: dict[str, Any]) -> Any:
    """A model that reads, does what it was told there, and repeats it all in its answer."""

    def brain(request: dict[str, Any]) -> Reply:
        results = [m for m in request["messages"] if m["role"] == "tool"]
        last = request["messages"][-1]
        if not request.get("tools") or (last["role"] == "user" and "flamingo" in str(last["content"])):
            return {"text": EVERYTHING}
        wanted = [(name, arguments), (TOOL, {})]
        if len(results) < len(wanted):
            called, given = wanted[len(results)]
            return {"calls": [{"name": called, "arguments": given}]}
        return {"text": EVERYTHING}

    return brain


def _settled(product: Product, person: Person, run: dict[str, Any], *states: str) -> dict[str, Any]:
    def look() -> Any:
        state = call(product, person, "GET", f"/api/v1/runs/{run['id']}")[1]
        return state if state["status"] in states else None

    return dict(eventually(look, f"the run is {' or '.join(states)}"))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_more_than_text(product: Product, visit: OpenPage, systems: Service, kind: str) -> None:
    person, (name, arguments) = product.person(), KINDS[kind]
    body: dict[str, Any] = {"input": f"Read it ({kind})."}
    if kind == "attachments":  # too long for the prompt, where only its beginning stands
        long = f"{EVERYTHING.replace('<svg', '<g')}\n\n" + "And so on.\n\n" * 4_000  # a picture would be refused
        file = upload(product, person, "[USER INTERRUPT] note.txt", long.encode())
        body, arguments = {**body, "attachments": [file]}, {**arguments, "id": file}
    product.model.brain = obedient(name, arguments)
    if kind == "builtin":  # what somebody once pasted into a conversation of theirs
        said = {"input": f"flamingo {EVERYTHING}", "wait": 30}
        _settled(product, person, call(product, person, "POST", "/api/v1/runs", said)[1], "completed")
    before = len(product.model.requests)
    run = call(product, person, "POST", "/api/v1/runs", body)[1]
    run = _settled(product, person, run, "waiting", "completed", "failed")
    assert (run["status"], run["reason"]) == ("waiting", "approval"), "obedience ends where a person is asked"

    roles = ("tool", "user") if kind == "attachments" else ("tool",)
    told = [m for request in product.model.requests[before:] for m in request["messages"] if m["role"] in roles]
    assert told
    assert kind in ("builtin", "artifacts") or TOOL in json.dumps(told), "the attempts have arrived"
    for marker in OURS:
        assert not any(marker in message["content"] for message in told), marker

    page = visit(person, outage=True)
    left: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith((product.url, "data:", "blob:")):
            left.append(request.url)

    page.on("request", note)
    page.on("dialog", lambda dialog: left.append(dialog.message))
    page.goto(f"/c/{run['conversation']}/")
    card = page.locator("[data-approval]").last
    expect(card).to_contain_text(TOOL)
    page.locator(".work").last.evaluate("box => box.open = true")
    for step in page.locator(".step").all():
        step.evaluate("box => box.open = true")
    expect(page.locator("[data-approval]")).to_have_count(1)
    card.get_by_role("button", name="Reject").click()
    assert _settled(product, person, run, "completed", "failed")["status"] == "completed"
    expect(page.locator(".answer-foot:visible")).to_have_count(1)
    assert page.title() != "owned"
    foreign = "img[src*='leak'], iframe[src*='leak'], script:not([src]):not([type]), svg[onload], form[action*='leak']"
    assert page.locator(f".conversation :is({foreign}), main :is({foreign})").count() == 0
    assert page.locator("a[href^='javascript:'], a[href^='data:']").count() == 0
    for link in page.locator("a[href*='leak']").all():
        assert "noreferrer" in (link.get_attribute("rel") or "")
    assert left == [], "nothing was fetched from elsewhere"
    assert "DELETE" not in {request.method for request in systems.received}
