"""Broker or database away: words on the page, nothing lost, and what was sent runs when the part is back."""

import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentapp.embedded import postgres, valkey
from agentapp.embedded.environment import Environment, ensure
from agentapp.embedded.process import Part, spawn, stop, wait_until
from tests.conversations.test_main_job import call
from tests.conversations.test_socket import page, send
from tests.fake_model import FakeModel
from tests.product import Product, eventually


class Installation(Product):
    """A product with PostgreSQL and Valkey of its own, which a test may stop and start again."""

    def __init__(self, folder: Path, model: FakeModel) -> None:
        self.own = ensure(folder, environ={"DEMO_MODEL": "none"}, database_root=Path(tempfile.gettempdir()))
        self.parts: dict[str, tuple[Part, Callable[[Environment], bool]]] = {
            "postgres": (postgres.prepare(self.own), postgres.ready),
            "valkey": (valkey.prepare(self.own), valkey.ready),
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.part_log = (folder / "parts.log").open("ab")
        self.up("postgres")
        self.up("valkey")
        super().__init__({**self.own.values, "VAR_DIR": str(folder), "DEMO_MODEL": "none"}, folder, model)

    def up(self, name: str) -> None:
        part, ready = self.parts[name]
        self.running[name] = spawn(part, self.part_log)
        assert wait_until(lambda: ready(self.own), self.running[name], 40), f"{name} did not start"

    def down(self, name: str) -> None:
        stop(self.parts[name][0], self.running.pop(name))

    def close(self) -> None:
        self.stop()
        for name in list(self.running):
            self.down(name)
        self.part_log.close()
        for folder in (self.own.sockets, self.own.postgres_home):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)


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
        done = mine.until(lambda b: b.get("run") == ack["run"] and b.get("channel") == "done", 40)
    assert done["data"]["status"] == "completed"
    assert done["data"]["answer"].endswith("word399")
    events = call(installation, person, "GET", f"/api/v1/runs/{ack['run']}/events")[1]
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
