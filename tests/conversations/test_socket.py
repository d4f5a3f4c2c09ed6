"""The page's socket against the running product: what a client sees that applies messages in order."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.product import Person, Product, eventually


class Page:
    """Applies envelopes as a page does: by `seq`, `attempt` and `offset`."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.seq: dict[str, int] = {}
        self.text: dict[str, str] = {}
        self.attempt: dict[str, int] = {}
        self.events: list[dict[str, Any]] = []

    def send(self, **action: Any) -> None:
        self.socket.send(json.dumps(action))

    def until(self, wanted: Any, seconds: float = 60) -> dict[str, Any]:
        while True:
            body = json.loads(self.socket.recv(timeout=seconds))
            self._apply(body)
            if wanted(body):
                return body

    def ended(self, run: str) -> dict[str, Any]:
        return self.until(lambda b: b.get("run") == run and b.get("channel") == "done")

    def _apply(self, body: dict[str, Any]) -> None:
        run = body.get("run")
        if body.get("type") == "snapshot":
            if body["answer"]["attempt"] >= self.attempt.get(run, 0):
                self.text[run], self.attempt[run] = body["answer"]["text"], body["answer"]["attempt"]
        elif body.get("seq"):
            assert body["seq"] == self.seq.get(run, 0) + 1, "seq has a gap or repeats"
            self.seq[run] = body["seq"]
            self.events.append(body)
            if body["channel"] == "answer" and body["data"]["status"] == "start":
                self.text[run], self.attempt[run] = "", body["data"]["attempt"]
        elif run and body.get("channel") == "answer":
            data = body["data"]
            assert data["offset"] <= len(self.text[run]), "a delta is missing"
            self.text[run] = self.text[run][: data["offset"]] + data["content"]


@contextmanager
def page(product: Product, person: Person, url: str = "", **more: str) -> Iterator[Page]:
    """A page of the product's web process, or of another one at `url`; `more` are headers."""
    headers, url = {"Cookie": f"sessionid={person.session}", **more}, url or product.url
    with connect(f"{url.replace('http', 'ws')}/ws/", additional_headers=headers, origin=Origin(url)) as socket:
        yield Page(socket)


def send(page: Page, content: str, client_id: str = "c1", conversation: str | None = None) -> dict[str, Any]:
    page.send(type="send", client_id=client_id, content=content, conversation=conversation)
    return page.until(lambda b: b.get("type") in ("ack", "error"))


@pytest.fixture
def person(product: Product) -> Person:
    return product.person()


def test_steps_and_answer_stream_in_order(product: Product, person: Person) -> None:
    with page(product, person) as mine:
        ack = send(mine, "What is 12 * 12?")
        done = mine.ended(ack["run"])
    kinds = [(e["channel"], e["data"].get("type") or "", e["data"].get("status") or "") for e in mine.events]
    assert kinds == [
        ("run", "", "running"),
        ("step", "thinking", "start"),
        ("step", "thinking", "done"),
        ("step", "iteration", "start"),
        ("step", "iteration", "done"),
        ("step", "thinking", "start"),
        ("step", "thinking", "done"),
        ("step", "answer", "start"),
        ("answer", "", "start"),
        ("answer", "", "done"),
        ("done", "", "completed"),
    ]
    assert mine.text[ack["run"]] == done["data"]["answer"] != ""


def test_whoever_comes_in_the_middle_sees_the_same(product: Product, person: Person) -> None:
    product.model.token_delay = 0.005
    with page(product, person) as first, page(product, person) as second:
        ack = send(first, "Tell a long story")
        first.until(lambda b: len(first.text.get(ack["run"], "")) > 500)
        second.send(type="watch", conversation=ack["conversation"])
        done = second.ended(ack["run"])
        first.ended(ack["run"])
    assert second.text == first.text == {ack["run"]: done["data"]["answer"]}
    assert second.events == first.events


def test_the_same_client_id_makes_one_message(product: Product, person: Person) -> None:
    with page(product, person) as mine:
        first = send(mine, "Once")
        mine.ended(first["run"])
        again = send(mine, "Once")
    assert (again["message"], again["run"]) == (first["message"], first["run"])
    count = product.sql("SELECT count(*) FROM conversations_message WHERE conversation_id = %s", first["conversation"])
    assert count == [(2,)]


def test_a_message_sent_meanwhile_is_read_by_the_run(product: Product, person: Person) -> None:
    product.model.token_delay = 0.005
    with page(product, person) as mine:
        first = send(mine, "Tell a long story")
        mine.until(lambda b: mine.text.get(first["run"], "") != "")
        second = send(mine, "And hello", "c2", first["conversation"])
        assert (second["injected"], second["run"]) == (True, first["run"])
        done = mine.ended(first["run"])
    assert done["data"]["answer"] == "Hello! You wrote: [USER INTERRUPT]: And hello"
    assert mine.text[first["run"]] == done["data"]["answer"]
    injected = [e["data"] for e in mine.events if e["channel"] == "inject"]
    assert injected == [{"type": "inject", "content": "And hello", "message_id": second["message"]}]
    state = product.sql("SELECT state FROM conversations_interrupt WHERE message_id = %s", second["message"])
    assert state == [("admitted",)]


def test_strangers_are_refused(product: Product, person: Person) -> None:
    with page(product, person) as mine, page(product, product.person()) as foreign:
        ack = send(mine, "Hello")
        mine.ended(ack["run"])
        for action in (
            {"type": "watch", "conversation": ack["conversation"]},
            {"type": "send", "content": "x", "conversation": ack["conversation"]},
            {"type": "cancel", "run": ack["run"]},
            {"type": "retry", "run": ack["run"]},
        ):
            foreign.send(**action)
            assert foreign.until(lambda b: True)["code"] == "not_found"


NO_MAP = '{"type": "watch", "conversation": "00000000-0000-0000-0000-000000000000", "after": [1]}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"type": "nonsense"}',
        '{"type": "watch", "conversation": 7}',
        "null",
        NO_MAP,
        "[" * 900 + "]" * 900,
    ],
)
def test_nonsense_gets_an_error_and_the_socket_lives(product: Product, person: Person, text: str) -> None:
    with page(product, person) as mine:
        mine.socket.send(text)
        assert mine.until(lambda b: True)["code"] == "bad_request"
        assert send(mine, "Still there?")["type"] == "ack"


def test_refusals_speak_the_readers_language(product: Product, person: Person) -> None:
    with page(product, person, **{"Accept-Language": "de"}) as german, page(product, person) as english:
        assert send(german, " ")["message"].startswith("Die Nachricht ist leer.")
        assert "Diese Unterhaltung" in send(german, "Hello", conversation=str(uuid4()))["message"]
        assert "Zeichen" in send(german, "x" * 200_000)["message"]
        assert send(english, " ")["message"].startswith("The message is empty.")


@pytest.mark.parametrize("headers", [{}, {"Cookie": "sessionid=nonsense"}, {"Authorization": "Bearer aa_nonsense"}])
def test_without_sign_in_the_socket_closes(product: Product, headers: dict[str, str]) -> None:
    with (
        connect(
            f"{product.url.replace('http', 'ws')}/ws/", additional_headers=headers, origin=Origin(product.url)
        ) as socket,
        pytest.raises(ConnectionClosed) as closed,
    ):
        socket.recv(timeout=10)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401


def test_a_foreign_page_cannot_use_the_session(product: Product, person: Person) -> None:
    headers = {"Cookie": f"sessionid={person.session}"}
    with (
        connect(
            f"{product.url.replace('http', 'ws')}/ws/", additional_headers=headers, origin=Origin("http://evil.example")
        ) as socket,
        pytest.raises(ConnectionClosed),
    ):
        socket.recv(timeout=10)


def test_an_api_key_opens_the_socket(product: Product, person: Person) -> None:
    with connect(f"{product.url.replace('http', 'ws')}/ws/", additional_headers=person.bearer) as socket:
        assert send(Page(socket), "Hello")["type"] == "ack"


def test_envelopes_of_the_users_own_stream_say_where_they_stand(product: Product, person: Person) -> None:
    with page(product, person) as mine, page(product, person) as other:
        ack = send(mine, "Hello")
        seen = [other.until(lambda b: "cursor" in b)]
        while seen[-1].get("data", {}).get("status") != "completed":
            seen.append(other.until(lambda b: "cursor" in b))
    cursors = [tuple(map(int, body["cursor"].split("-"))) for body in seen]
    assert cursors == sorted(set(cursors))
    assert {body["channel"] for body in seen} >= {"conversation", "run", "message"}
    assert {body["data"]["conversation"] for body in seen if body["channel"] == "run"} == {ack["conversation"]}


@pytest.mark.parametrize(
    ("way", "statement"),
    [
        ("session", "UPDATE accounts_user SET is_active = false WHERE id = %s"),
        ("session", "DELETE FROM django_session WHERE session_key = %s"),
        ("key", "UPDATE accounts_apikey SET revoked_at = now() WHERE user_id = %s"),
        ("key", "UPDATE accounts_apikey SET expires_at = now() WHERE user_id = %s"),
    ],
)
def test_a_socket_does_not_outlive_what_opened_it(product: Product, person: Person, way: str, statement: str) -> None:
    headers = person.bearer if way == "key" else {"Cookie": f"sessionid={person.session}"}
    address = f"{product.url.replace('http', 'ws')}/ws/"
    with connect(address, additional_headers=headers, origin=Origin(product.url)) as socket:
        assert send(Page(socket), "Hello")["type"] == "ack"
        product.execute(statement, person.session if "session_key" in statement else person.id)
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                socket.recv(timeout=10)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401


def test_an_answer_is_kept_though_its_page_hung_up_at_the_last_words(product: Product, person: Person) -> None:
    product.model.token_delay = 0.005
    with page(product, person) as client:
        run = send(client, "Tell a long story")["run"]
        client.until(lambda b: "word399" in client.text.get(run, ""))
    ended = "SELECT status, answer FROM conversations_run WHERE id = %s AND ended_at IS NOT NULL"
    assert eventually(lambda: product.sql(ended, run), "the run has ended") == [
        ("completed", " ".join(f"word{n}" for n in range(400)))
    ]


def _closed_with(product: Product, **headers: str) -> int:
    """The code with which a socket is closed that comes in like this."""
    url = f"{product.url.replace('http', 'ws')}/ws/"
    with connect(url, additional_headers=headers) as socket, pytest.raises(ConnectionClosed) as closed:
        socket.recv(timeout=60)
    assert closed.value.rcvd
    return closed.value.rcvd.code


MAKE_KEYS = """
import json
from datetime import timedelta
from django.utils import timezone
from accounts.models import User
from accounts.services import create_api_key, revoke_api_key
user, gone = User.objects.get(pk={user}), User.objects.create(username="gone-{user}", is_active=False)
revoked, text = create_api_key(user, "x")
revoke_api_key(revoked)
print(json.dumps({{
    "revoked": text,
    "expired": create_api_key(user, "x", timezone.now() - timedelta(seconds=1))[1],
    "disabled": create_api_key(gone, "x")[1],
    "elsewhere": create_api_key(user, "x", addresses=["192.0.2.0/24"])[1],
    "nothing": create_api_key(user, "x", scopes=["admin:read"])[1],
    "reading": create_api_key(user, "x", scopes=["runs:read"])[1],
}}))
"""


def test_a_key_comes_in_by_the_socket_as_by_a_request(product: Product, person: Person) -> None:
    keys = json.loads(product.manage("shell", "--no-imports", "-c", MAKE_KEYS.format(user=person.id)))
    codes = {
        name: _closed_with(product, Authorization=f"Bearer {key}") for name, key in keys.items() if name != "reading"
    }
    assert codes == {"revoked": 4401, "expired": 4401, "disabled": 4401, "elsewhere": 4403, "nothing": 4403}
    headers = {"Authorization": f"bearer {keys['reading']}"}
    with connect(f"{product.url.replace('http', 'ws')}/ws/", additional_headers=headers) as socket:
        reader = Page(socket)
        for action in ("send", "cancel", "retry", "recall", "answer", "decide", "resolve"):
            reader.send(type=action, content="Hello")
            assert reader.until(lambda b: b.get("type") == "error")["code"] == "insufficient_scope", action
