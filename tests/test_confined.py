"""The child that does work on files of strangers: what it may not do, and what becomes of it."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from agentapp.confined import Limits, Refused, confined
from tests.product import eventually

SMALL = Limits(memory=400_000_000, cpu=1, seconds=20.0, output=1_000_000)


def run(name: str, data: bytes = b"", limits: Limits = SMALL, **arguments):
    return asyncio.run(confined(f"tests.confined_functions:{name}", data, arguments, limits))


def test_it_returns_what_the_function_makes_of_the_bytes(tmp_path):
    assert run("backwards", b"abc", suffix="!") == b"cba!"
    path = tmp_path / "file"
    path.write_bytes(b"xyz")
    assert asyncio.run(confined("tests.confined_functions:backwards", path, {"suffix": "?"})) == b"zyx?"
    big = os.urandom(5_000_000)
    assert run("backwards", big, Limits(), suffix="") == big[::-1]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("refuse", "why"),
        ("eat_memory", "memory"),
        ("burn", "time"),
        ("chatter", "output"),
        ("stumble", "broken"),
        ("crash", "memory"),
    ],
)
def test_the_reason_why_there_is_no_result(name, code):
    with pytest.raises(Refused) as caught:
        run(name)
    assert caught.value.code == code


def test_wall_time_is_bounded_too():
    with pytest.raises(Refused) as caught:
        run("sleep", limits=Limits(seconds=1.0))
    assert caught.value.code == "time"


@pytest.mark.parametrize("name", ["connect", "write_a_file", "read_a_secret", "start_a_program", "load_a_library"])
def test_nothing_leaves_it(name, tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        answer = run(name, path=str(secret), port=server.getsockname()[1])
    assert answer.startswith(b"PermissionError"), answer
    assert secret.read_text() == "s3cret"


def test_it_has_no_environment_of_ours(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "canary")
    assert b"canary" not in run("environment")


async def test_it_is_gone_when_its_caller_gives_up():
    task = asyncio.create_task(confined("tests.confined_functions:sleep", b"", {}, Limits()))
    await asyncio.to_thread(eventually, lambda: _children(os.getpid()), "a child")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _children(os.getpid())


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's word to children is Linux's")
async def test_it_is_gone_when_its_worker_is_killed():
    root = Path(__file__).parents[1]
    code = "import asyncio; from agentapp.confined import *; "
    code += "asyncio.run(confined('tests.confined_functions:sleep', b''))"
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=root)
    (child,) = await asyncio.to_thread(eventually, lambda: _children(worker.pid), "a child")
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    await asyncio.to_thread(eventually, lambda: not _alive(child), "no child")


def _children(pid: int) -> list[int]:
    found = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in tasks.read_text().split():
            line = Path(f"/proc/{child}/cmdline")
            if line.exists() and b"confined_child" in line.read_bytes():
                found.append(int(child))
    return found


def _alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
