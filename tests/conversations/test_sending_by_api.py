"""Messages sent by REST: as the page's socket would, under the sender's own id."""

from tests.conversations.test_main_job import call
from tests.product import Person, Product, eventually


def test_a_message_sent_twice_under_one_id_is_one(product: Product) -> None:
    person = product.person()
    first = call(product, person, "POST", "/api/v1/runs", {"input": "Hello", "client_id": "a"})
    again = call(product, person, "POST", "/api/v1/runs", {"input": "Hello", "client_id": "a"})
    assert first[1]["id"] == again[1]["id"]
    _ended(product, person, first[1]["id"])
    address = f"/api/v1/conversations/{first[1]['conversation']}/messages"
    body = {"content": "What is 12 * 12?", "client_id": "b"}
    (status, sent), (_, repeated) = (call(product, person, "POST", address, body) for _ in range(2))
    assert status == 202
    assert sent == repeated
    assert not sent["injected"]
    assert "144" in _ended(product, person, sent["run"])["answer"]
    count = "SELECT count(*) FROM conversations_message WHERE client_id = 'b' AND conversation_id = %s"
    assert product.sql(count, first[1]["conversation"]) == [(1,)]


def test_a_stranger_cannot_send_into_a_conversation(product: Product) -> None:
    person, stranger = product.person(), product.person()
    run = call(product, person, "POST", "/api/v1/runs", {"input": "Hello"})[1]
    address = f"/api/v1/conversations/{run['conversation']}/messages"
    assert call(product, stranger, "POST", address, {"content": "Let me in"})[0] == 404


def _ended(product: Product, person: Person, run: str) -> dict[str, str]:
    ended: dict[str, str] = eventually(
        lambda: (r := call(product, person, "GET", f"/api/v1/runs/{run}")[1])["ended_at"] and r, "the run has ended"
    )
    return ended
