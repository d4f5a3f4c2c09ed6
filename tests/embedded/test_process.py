import os
import signal
import subprocess
import sys
from pathlib import Path

from agentapp.embedded.process import Part, spawn, stop, wait_until
from tests.product import eventually

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def python(program: str, **options) -> Part:
    return Part("part", [sys.executable, "-c", program], **options)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_part_does_not_outlive_a_killed_parent():
    program = """
import subprocess, sys, time
from agentapp.embedded.process import Part, spawn
print(spawn(Part("part", [sys.executable, "-c", "import time; time.sleep(60)"]), subprocess.DEVNULL).pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent:
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    eventually(lambda: not is_running(child), "the part ended with its parent", 5)


def test_a_stubborn_part_is_killed_after_its_grace_time():
    part = python(STUBBORN, grace_seconds=0.2)
    process = spawn(part, subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        stop(part, process)
        assert process.returncode == -signal.SIGKILL


def test_a_part_runs_in_a_session_of_its_own():
    with spawn(python("import os; print(os.getsid(0) == os.getpid())"), subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"True\n"
        assert os.getsid(0) != process.pid


def test_waiting_for_a_part_ends_when_it_dies():
    with spawn(python("raise SystemExit(3)"), subprocess.DEVNULL) as process:
        assert not wait_until(lambda: False, process, seconds=30)
        assert process.returncode == 3
