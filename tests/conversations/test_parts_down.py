"""Broker or database away: words on the page, nothing lost, and what was sent runs when the part is back."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conversations.test_main_job import call
from tests.conversations.test_socket import page, send
from tests.fake_model import FakeModel
from tests.installation import Installation
from tests.product import eventually


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    model = FakeModel().start()
    installation = Installation(Path(tmp_path_factory.mktemp("installation")), model)
    try:
        installation.start()
        yield installation
    finally:
        installation.close()
        model.end()


def test_with_the_broker_away_a_message_is_kept_and_runs_later(installation: Installation) -> None:
    person = installation.person()
    installation.down("valkey")
    with page(installation, person) as mine:
        ack = send(mine, "Is the broker there?")
        assert ack["type"] == "ack"
        assert call(installation, person, "GET", f"/api/v1/runs/{ack['run']}")[1]["status"] == "queued"
        installation.up("valkey")
        ended = mine.ended(ack["run"])
    assert ended["data"]["answer"] == "Hello! You wrote: Is the broker there?"
    assert "broker does not answer" in installation.log("web")


def test_the_broker_may_go_while_a_run_is_going_on(installation: Installation) -> None:
    installation.restore()
    installation.model.token_delay = 0.01
    person = installation.person()
    with page(installation, person) as mine:
        ack = send(mine, "Tell a long story")
        mine.until(lambda body: mine.text.get(ack["run"], "") != "")
        installation.down("valkey")
        installation.up("valkey")
        run = eventually(
            lambda: (r := call(installation, person, "GET", f"/api/v1/runs/{ack['run']}")[1])["ended_at"] and r,
            "the run has ended",
            30,
        )
        assert run["status"] == "completed"
        assert mine.ended(ack["run"])["data"]["answer"] == run["answer"]


def test_with_the_database_away_the_sender_is_told_and_may_send_again(installation: Installation) -> None:
    installation.restore()
    person = installation.person()
    with page(installation, person) as mine:
        installation.down("postgres")
        refused = send(mine, "Is the database there?", "same")
        assert (refused["type"], refused["code"], refused["client_id"]) == ("error", "unavailable", "same")
        status, problem = call(installation, person, "POST", "/api/v1/runs", {"input": "And by the API?"})
        assert (status, problem["code"]) == (503, "unavailable")
        assert not installation.is_ready()
        installation.up("postgres")
        ack = eventually(lambda: (a := send(mine, "Is the database there?", "same"))["type"] == "ack" and a, "an ack")
        assert mine.ended(ack["run"])["data"]["status"] == "completed"
    assert "database does not answer" in installation.log("web")


def test_the_database_may_go_while_a_run_is_going_on(installation: Installation) -> None:
    installation.restore()
    installation.model.token_delay = 0.01
    person = installation.person()
    with page(installation, person) as mine:
        ack = send(mine, "Tell a long story")
        mine.until(lambda body: mine.text.get(ack["run"], "") != "")
        installation.down("postgres")
        installation.up("postgres")
        done = mine.until(lambda b: b.get("run") == ack["run"] and b.get("channel") == "done", 60)
    assert done["data"]["status"] == "completed"
    assert done["data"]["answer"].endswith("word399")
    events = call(installation, person, "GET", f"/api/v1/runs/{ack['run']}/events")[1]["items"]
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))


def test_with_the_database_away_a_page_says_so(installation: Installation) -> None:
    installation.restore()
    person = installation.person()
    request = urllib.request.Request(f"{installation.url}/", headers={"Cookie": f"sessionid={person.session}"})  # noqa: S310 - loopback
    installation.down("postgres")
    try:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=20)  # noqa: S310 - loopback
        assert refused.value.code == 503
        assert b"What you sent is kept" in refused.value.read()
    finally:
        installation.up("postgres")
