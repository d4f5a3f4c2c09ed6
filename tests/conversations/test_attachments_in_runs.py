"""Files of messages in the real worker: what the model is sent, and what the person is told."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conversations.test_main_job import call
from tests.conversations.test_questions import ended
from tests.conversations.test_socket import page
from tests.fake_model import think
from tests.paperwork import locked_pdf, pdf
from tests.pictures import picture
from tests.product import Person, Product, eventually

LONG = "\n\n".join(f"Paragraph {number} is about nothing at all." for number in range(2_000)) + "\n\nThe code is 7319."


@pytest.fixture
def person(product: Product) -> Iterator[Person]:
    """Somebody whose model searches long files for a code, and says "Seen." otherwise."""

    def brain(request: dict[str, Any]) -> dict[str, Any]:
        last = request["messages"][-1]
        if "7319" in str(request["messages"]):  # the tool has found it
            return {"text": "The code is 7319."}
        tools = {tool["function"]["name"] for tool in request.get("tools") or ()}
        if "read_attachment" in tools:
            number = said(last).split('<attachment id="')[1][:8]
            return {"calls": [{"name": "read_attachment", "arguments": {"id": number, "search": "code is"}}]}
        return {"text": "Seen."}

    product.model.brain = brain
    yield product.person()
    product.model.brain = think
    product.execute("UPDATE tools_admin_languagemodel SET vision = false")


def said(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def upload(product: Product, person: Person, name: str, content: bytes) -> str:
    edge = "edge-of-a-part"
    head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    headers = {**person.bearer, "Content-Type": f"multipart/form-data; boundary={edge}"}
    body = head.encode() + content + f"\r\n--{edge}--\r\n".encode()
    request = urllib.request.Request(product.url + "/api/v1/attachments", body, headers)  # noqa: S310 - loopback
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - loopback
        return str(json.load(answer)["id"])


def ask(product: Product, person: Person, question: str, *files: str, **more: Any) -> dict[str, Any]:
    body = {"input": question, "attachments": files, **more}
    return ended(product, person, call(product, person, "POST", "/api/v1/runs", body)[1])


def events(product: Product, person: Person, run: dict[str, Any], channel: str) -> list[dict[str, Any]]:
    found = call(product, person, "GET", f"/api/v1/runs/{run['id']}/events")[1]["items"]
    return [event["data"] for event in found if event["channel"] == channel]


def test_a_document_is_read_ahead_and_stands_in_the_prompt(product: Product, person: Person) -> None:
    number = upload(product, person, "trip.pdf", pdf("The hotel costs 90 a night."))
    listed = f"/api/v1/attachments?ids={number}"
    eventually(
        lambda: call(product, person, "GET", listed)[1]["items"][0]["status"] == "ready", "the worker has read it"
    )
    run = ask(product, person, "What does it cost?", number)
    assert run["answer"] == "Seen."
    asked = said(product.model.requests[-1]["messages"][-1])
    assert asked.startswith("What does it cost?")
    assert "[page 1]\nThe hotel costs 90 a night." in asked
    address = f"/api/v1/conversations/{run['conversation']}/messages"
    again = call(product, person, "POST", address, {"content": "And again?"})[1]
    ended(product, person, call(product, person, "GET", f"/api/v1/runs/{again['run']}")[1])
    assert any("The hotel costs 90" in said(message) for message in product.model.requests[-1]["messages"][:-1])


def test_a_long_document_is_searched_by_a_tool(product: Product, person: Person) -> None:
    run = ask(product, person, "What is the code?", upload(product, person, "long.md", LONG.encode()))
    assert run["answer"] == "The code is 7319."
    (tool,) = [
        c for c in call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1]["items"] if c["kind"] == "tool"
    ]
    assert (tool["request"]["name"], tool["state"]) == ("read_attachment", "succeeded")
    ask(product, person, "Hello")
    assert "read_attachment" not in str(product.model.requests[-1].get("tools"))


def test_what_cannot_be_read_is_told_to_model_and_person(product: Product, person: Person) -> None:
    run = ask(product, person, "Look", upload(product, person, "locked.pdf", locked_pdf("x", password="y")))
    assert "could not be read: The PDF is protected by a password." in said(product.model.requests[-1]["messages"][-1])
    (told,) = events(product, person, run, "files")
    assert [problem["filename"] for problem in told["problems"]] == ["locked.pdf"]


def test_a_model_that_sees_gets_the_picture_and_the_record_its_address(product: Product, person: Person) -> None:
    product.execute("UPDATE tools_admin_languagemodel SET vision = true")
    number = upload(product, person, "photo.png", picture())
    run = ask(product, person, "What colour is it?", number)
    parts = product.model.requests[-1]["messages"][-1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"]
    assert parts[1]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    recorded = json.dumps(call(product, person, "GET", f"/api/v1/runs/{run['id']}/calls")[1])
    assert f"attachment:{number}" in recorded
    assert "base64" not in recorded
    assert events(product, person, run, "files") == []


def test_a_model_that_does_not_see_is_told_so_as_is_the_person(product: Product, person: Person) -> None:
    run = ask(product, person, "What colour is it?", upload(product, person, "photo.png", picture()))
    assert "photo.png: a picture. You cannot see pictures" in said(product.model.requests[-1]["messages"][-1])
    assert isinstance(product.model.requests[-1]["messages"][-1]["content"], str)
    (told,) = events(product, person, run, "files")
    assert "cannot see pictures" in told["problems"][0]["message"]


@pytest.mark.parametrize("mode", ["react", "plan_execute"])
def test_what_is_sent_meanwhile_brings_its_files(product: Product, person: Person, mode: str) -> None:
    """The first reply waits for the second message, and so has to hear of it."""
    product.execute("UPDATE tools_admin_languagemodel SET vision = true")
    number = upload(product, person, "photo.png", picture())
    sent: list[Any] = []

    def brain(request: dict[str, Any]) -> dict[str, Any]:
        if not sent:
            run = call(product, person, "GET", f"/api/v1/runs/{started['id']}")[1]
            address = f"/api/v1/conversations/{run['conversation']}/messages"
            sent.append(call(product, person, "POST", address, {"content": "See this", "attachments": [number]})[1])
        return {"text": "Seen."}

    product.model.brain = brain
    started = call(product, person, "POST", "/api/v1/runs", {"input": "Wait", "mode": mode})[1]
    ended(product, person, started)
    eventually(lambda: "image_url" in str(product.model.requests[-1]["messages"]), "the picture has been shown")


def test_a_picture_goes_to_a_model_of_the_route_that_sees(product: Product, person: Person) -> None:
    """What conditions of routes ask about is true."""
    add = """
from tools_admin.models import LanguageModel, Route, RouteEntry
blind = LanguageModel.objects.get(name="fake-model")
seeing = LanguageModel.objects.create(provider=blind.provider, name="seeing-model", vision=True)
route = Route.objects.get(name="general")
for position, (model, images) in enumerate([(blind, "without"), (seeing, "with")]):
    RouteEntry.objects.create(route=route, model=model, position=position, images=images)
"""
    product.manage("shell", "-c", add)
    try:
        number = upload(product, person, "photo.png", picture())
        assert ask(product, person, "What colour?", number)["model"]["name"] == "seeing-model"
        assert product.model.requests[-1]["model"] == "seeing-model"
        assert ask(product, person, "Hello")["model"]["name"] == "fake-model"
    finally:
        remove = "from tools_admin.models import *; RouteEntry.objects.all().delete()"
        product.manage("shell", "-c", f"{remove}; LanguageModel.objects.filter(name='seeing-model').delete()")


def test_files_go_by_the_socket_and_other_pages_hear_of_them(product: Product, person: Person) -> None:
    number = upload(product, person, "notes.txt", b"The secret is 42.")
    stranger = product.person()
    with page(product, person) as tab, page(product, person) as other, page(product, stranger) as theirs:
        theirs.send(type="send", client_id="a", content="Look", attachments=[number])
        refusal = theirs.until(lambda body: body.get("type") in ("ack", "error"))
        assert (refusal["code"], refusal["client_id"]) == ("not_found", "a")
        tab.send(type="send", client_id="a", content="Look", attachments=["x"])
        assert tab.until(lambda body: body.get("type") in ("ack", "error"))["code"] == "bad_request"
        tab.send(type="send", client_id="a", content="", attachments=[number])
        ack = tab.until(lambda body: body.get("type") in ("ack", "error"))
        told = other.until(lambda body: body.get("channel") == "message" and body["data"]["role"] == "user")
        assert [file["filename"] for file in told["data"]["attachments"]] == ["notes.txt"]
        tab.ended(ack["run"])
    assert "The secret is 42." in said(product.model.requests[-1]["messages"][-1])


def test_a_document_sent_meanwhile_is_read_before_the_agent_hears_of_it(product: Product, person: Person) -> None:
    number = upload(product, person, "notes.txt", b"The secret is 42.")
    product.execute("UPDATE conversations_attachment SET status = 'queued' WHERE id = %s", number)
    sent: list[Any] = []

    def brain(request: dict[str, Any]) -> dict[str, Any]:
        if not sent:
            address = f"/api/v1/conversations/{started['conversation']}/messages"
            sent.append(call(product, person, "POST", address, {"content": "See this", "attachments": [number]})[1])
        return {"text": "Seen."}

    product.model.brain = brain
    started = call(product, person, "POST", "/api/v1/runs", {"input": "Wait"})[1]
    ended(product, person, started)
    eventually(lambda: "The secret is 42." in str(product.model.requests[-1]["messages"]), "it has been told")
