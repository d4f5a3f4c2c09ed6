"""A run as Server-Sent Events, against the running product."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from conversations import sse
from conversations.outbox import Outbox
from tests.product import Person, Product, eventually


def start(product: Product, person: Person, question: str, url: str = "") -> str:
    answer = httpx2.post(f"{url or product.url}/api/v1/runs", json={"input": question}, headers=person.bearer)
    run: str = answer.json()["id"]
    return run


@contextmanager
def events(
    product: Product, person: Person, run: str, after: int | None = None, position: int = 0, url: str = ""
) -> Iterator[Iterator[dict[str, Any]]]:
    headers = {**person.bearer, "Accept": "text/event-stream"}
    if after is not None:
        headers["Last-Event-ID"] = str(after)
    url = f"{url or product.url}/api/v1/runs/{run}/events"
    with httpx2.stream("GET", url, headers=headers, params={"after": position}, timeout=20) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"  # C-51: proxies hold nothing back, nor compress it
        assert "no-transform" in response.headers["cache-control"]
        yield _parse(response.iter_lines())


def _parse(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """As the standard says: fields, an empty line ends an event, a line that begins with a colon is a comment."""
    fields: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line:
            if "data" in fields:
                body = json.loads(fields["data"])
                assert fields["event"] == body["channel"]
                assert fields.get("id") == (str(body["seq"]) if "seq" in body else None)
                yield body
            fields = {}


def text(seen: list[dict[str, Any]]) -> str:
    """The answer as a client puts it together."""
    answer = ""
    for body in seen:
        if body["channel"] == "answer" and body["data"]["status"] == "start":
            answer = ""
        elif body["channel"] == "answer" and body["data"]["status"] == "delta":
            assert body["data"]["offset"] <= len(answer), "text is missing"
            answer = answer[: body["data"]["offset"]] + body["data"]["content"]
    return answer


def numbers(seen: list[dict[str, Any]]) -> list[int]:
    return [body["seq"] for body in seen if "seq" in body]


@pytest.fixture
def person(product: Product) -> Person:
    return product.person()


def test_a_run_streams_from_its_first_event_to_done(product: Product, person: Person) -> None:
    product.model.token_delay = 0.002
    run = start(product, person, "Tell a long story")
    with events(product, person, run) as stream:
        seen = list(stream)
    assert numbers(seen) == list(range(1, len(numbers(seen)) + 1))
    assert seen[-1]["channel"] == "done"
    assert text(seen) == seen[-1]["data"]["answer"] != ""
    deltas = [body for body in seen if "seq" not in body]
    assert len(deltas) > 3, "the text came in one piece"


def test_a_client_that_comes_back_in_the_middle_gets_the_text_so_far(product: Product, person: Person) -> None:
    product.model.token_delay = 0.005
    run = start(product, person, "Tell a long story")
    first: list[dict[str, Any]] = []
    with events(product, person, run) as stream:
        for body in stream:
            first.append(body)
            if len(text(first)) > 300:
                break
    last = numbers(first)[-1]
    with events(product, person, run, last) as stream:
        second = list(stream)
    assert numbers(second) == list(range(last + 1, last + 1 + len(numbers(second))))
    opening = second[0]["data"]
    assert (opening["status"], opening["offset"]) == ("delta", 0)
    assert len(opening["content"]) >= 300
    assert text(second) == second[-1]["data"]["answer"]


def test_the_header_wins_over_the_parameter(product: Product, person: Person) -> None:
    run = start(product, person, "What is 12 * 12?")
    with events(product, person, run) as stream:
        count = len(numbers(list(stream)))
    with events(product, person, run, after=1) as stream:
        assert numbers(list(stream)) == list(range(2, count + 1))
    with events(product, person, run, position=3) as stream:
        assert numbers(list(stream)) == list(range(4, count + 1))
    with events(product, person, run, after=1, position=3) as stream:
        assert numbers(list(stream)) == list(range(2, count + 1))


def test_after_done_there_is_nothing_to_come_back_for(product: Product, person: Person) -> None:
    run = start(product, person, "Hello")
    with events(product, person, run) as stream:
        last = numbers(list(stream))[-1]
    headers = {**person.bearer, "Accept": "text/event-stream", "Last-Event-ID": str(last)}
    assert httpx2.get(f"{product.url}/api/v1/runs/{run}/events", headers=headers).status_code == 204


def test_without_the_media_type_it_is_json(product: Product, person: Person) -> None:
    run = start(product, person, "Hello")
    with events(product, person, run) as stream:
        seen = [body for body in stream if "seq" in body]
    rows = httpx2.get(f"{product.url}/api/v1/runs/{run}/events", headers=person.bearer).json()["items"]
    assert [(r["seq"], r["channel"], r["data"]) for r in rows] == [(s["seq"], s["channel"], s["data"]) for s in seen]
    rest = httpx2.get(f"{product.url}/api/v1/runs/{run}/events?after=2", headers=person.bearer).json()["items"]
    assert rest == rows[2:]


@pytest.mark.parametrize("after", ["-1", "x", "99999999999999999999"])
def test_a_position_that_is_none_is_refused(product: Product, person: Person, after: str) -> None:
    run = start(product, person, "Hello")
    answer = httpx2.get(f"{product.url}/api/v1/runs/{run}/events?after={after}", headers=person.bearer)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
def test_strangers_find_nothing(product: Product, person: Person, accept: str) -> None:
    run = start(product, person, "Hello")
    url = f"{product.url}/api/v1/runs/{run}/events"
    stranger = httpx2.get(url, headers={**product.person().bearer, "Accept": accept})
    assert (stranger.status_code, stranger.json()["code"]) == (404, "not_found")
    nobody = httpx2.get(url, headers={"Accept": accept})
    assert (nobody.status_code, nobody.json()["code"]) == (401, "not_signed_in")


def test_a_session_opens_the_stream_too(product: Product, person: Person) -> None:
    run = start(product, person, "Hello")
    headers = {"Cookie": f"sessionid={person.session}", "Accept": "text/event-stream"}
    answer = httpx2.get(f"{product.url}/api/v1/runs/{run}/events", headers=headers, timeout=20)
    assert answer.status_code == 200
    assert "event: done" in answer.text


def test_a_revoked_key_ends_its_stream(product: Product, person: Person) -> None:
    product.model.token_delay = 0.1
    run = start(product, person, "Tell a long story")
    with events(product, person, run) as stream:
        seen = [next(stream)]
        product.execute("UPDATE accounts_apikey SET revoked_at = now() WHERE user_id = %s", person.id)
        seen += stream
    assert seen[-1]["channel"] != "done"
    product.execute("UPDATE accounts_apikey SET revoked_at = NULL WHERE user_id = %s", person.id)
    stopped = httpx2.post(f"{product.url}/api/v1/runs/{run}/cancel", headers=person.bearer)
    assert stopped.status_code == 200
    eventually(
        lambda: product.sql("SELECT status FROM conversations_run WHERE id = %s", run) == [("cancelled",)], "end"
    )


async def test_a_silent_stream_says_that_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:  # C-51
    """Else a proxy would cut it off after a minute."""
    assert sse.HEARTBEAT_SECONDS < 30
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.01)
    assert await sse._next(Outbox(lambda: None)) == []
