"""The one command, as a person would use it: a real process group in a folder of its own."""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentapp.embedded.environment import CHECKOUT, read
from tests.product import eventually

pytestmark = pytest.mark.slow
OURS = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ENCRYPTION_KEYS", "OPENAI_BASE_URL", "OPENAI_API_KEY", "HOST")


class Up:
    """One `manage.py up` with what it printed so far."""

    def __init__(self, var: Path, port: int, **environ: str) -> None:
        clean = {name: value for name, value in os.environ.items() if name not in OURS}
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up"],
            env={**clean, "VAR_DIR": str(var), "PORT": str(port), "DEMO_MODEL": "none", **environ},
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.output = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line

    def says(self, pattern: str, seconds: float = 90) -> re.Match[str]:
        def found() -> re.Match[str] | None:
            if self.process.poll() is not None:
                self._reader.join()
            match = re.search(pattern, self.output)
            assert match or self.process.poll() is None, self.output
            return match

        return eventually(found, f"it says {pattern!r}", seconds)

    def ends(self, number: signal.Signals | None = None, seconds: float = 60) -> int:
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(seconds)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture(scope="module")
def var(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("up") / "var"
    yield folder
    if home := read(folder).get("POSTGRES_HOME"):
        shutil.rmtree(home)


@pytest.fixture(scope="module")
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def up(var: Path, port: int) -> Iterator[Up]:
    """A group that is ready. All tests share the data, as several starts of one checkout do."""
    group = Up(var, port)
    group.says(r"Ready in")
    yield group
    if group.process.poll() is None:
        group.ends(signal.SIGINT)


def parts_live(var: Path) -> bool:
    """Every part holds this lock."""
    with (var / "parts.lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def process_of(part: str, var: Path) -> int:
    """The process whose environment and command line show that it is this installation's part."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            ours = f"VAR_DIR={var}".encode() in (folder / "environ").read_bytes().split(b"\0")
            if ours and part.encode() in (folder / "cmdline").read_bytes():
                return int(folder.name)
    raise AssertionError(f"no process of {part}")


def get(address: str) -> int:
    with urllib.request.urlopen(address, timeout=10) as response:  # noqa: S310 - loopback
        return int(response.status)


def test_the_first_start_prints_time_address_and_link(var, port):
    group = Up(var, port)
    ready = group.says(r"Ready in ([\d.]+) s: (http://127\.0\.0\.1:\d+/)")
    link = group.says(r"First start: create the administrator at (\S+)")
    assert get(f"{ready[2]}healthz") == 200
    assert get(f"{ready[2]}readyz") == 200
    assert get(link[1]) == 200
    assert group.ends(signal.SIGINT) == 0
    assert not parts_live(var)
    assert "stopped (" not in group.output


def test_a_second_start_in_the_same_folder_is_refused_in_one_line(up, var):
    with socket.create_server(("127.0.0.1", 0)) as server:
        other = int(server.getsockname()[1])
    second = Up(var, other)
    assert second.ends() == 1
    assert second.output == f"Already running from this checkout (process {up.process.pid}): stop it first.\n"


def test_a_busy_port_is_one_line_and_nothing_is_started(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        busy = int(server.getsockname()[1])
        group = Up(tmp_path / "var", busy)
        assert group.ends(seconds=10) == 1
    assert group.output.count("\n") == 1
    assert f"127.0.0.1:{busy}" in group.output
    assert not (tmp_path / "var" / "postgres").exists()
    assert not (tmp_path / "var" / "env").exists()


def test_nonsense_as_port_is_one_line(tmp_path):
    group = Up(tmp_path / "var", 99999)
    assert group.ends(seconds=10) == 1
    assert group.output == "PORT=99999 is no port: use a number from 1 to 65535.\n"


@pytest.mark.parametrize(
    ("name", "url"),
    [("DATABASE_URL", "postgresql://nobody:secret@127.0.0.1:1/none"), ("REDIS_URL", "redis://:secret@127.0.0.1:1/0")],
)
def test_a_given_server_that_does_not_answer_is_one_line_without_its_password(var, port, name, url):
    group = Up(var, port, **{name: url})
    assert group.ends() == 1
    assert group.output.count("\n") == 1
    assert name in group.output
    assert "refused" in group.output
    assert "secret" not in group.output


def test_a_killed_web_part_comes_back_on_the_same_port(up, var, port):
    os.kill(process_of("agentapp.web", var), signal.SIGKILL)
    up.says(r"web stopped \(killed by SIGKILL.*web\.log")
    # The socket stays open meanwhile: the request waits for the new process.
    assert get(f"http://127.0.0.1:{port}/healthz") == 200


def test_killing_the_supervisor_leaves_no_orphans_and_the_next_start_works(up, var, port):
    up.ends(signal.SIGKILL)
    eventually(lambda: not parts_live(var), "all parts ended", 10)
    again = Up(var, port, ADMIN_USERNAME="root", ADMIN_PASSWORD="a long enough password")
    again.says(r"Ready in")
    assert "First start" not in again.output
    assert again.ends(signal.SIGTERM) == 0


def test_a_broken_part_is_named_with_its_log(var, port):
    home = Path(read(var).get("POSTGRES_HOME") or var / "postgres")
    version = home / "data" / "PG_VERSION"
    version.rename(version.with_suffix(".away"))
    try:
        group = Up(var, port)
        assert group.ends() == 1
        assert group.output.startswith("postgres did not start: ")
        assert group.output.count("\n") == 1
        assert "postgres.log" in group.output
        assert not parts_live(var)
    finally:
        version.with_suffix(".away").rename(version)
