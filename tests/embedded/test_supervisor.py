import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentapp.embedded import supervisor as module
from agentapp.embedded.process import Part
from agentapp.embedded.supervisor import PartLog, Supervisor

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    group = Supervisor(tmp_path, lock)
    yield group
    group.stop(["part"])
    group.close()
    os.close(lock)
    for number, handler in handlers.items():
        signal.signal(number, handler)


STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def python(program: str, **options) -> Part:
    return Part("part", [sys.executable, "-c", program], **options)


def turn_until(group: Supervisor, condition, seconds: float = 20) -> None:
    assert group.wait_until(condition, seconds, every=0.02)


def test_a_part_that_dies_starts_again_with_growing_delay(supervisor, tmp_path, capsys):
    starts = tmp_path / "starts"
    supervisor.start(python(f"open({str(starts)!r}, 'a').write('x'); raise SystemExit('no such thing')"))
    turn_until(supervisor, lambda: starts.exists() and starts.read_text() == "xxx")
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert "part stopped (exit code 1: no such thing); again in 0.5 s. Log:" in lines[0]
    assert str(tmp_path / "part.log") in lines[0]
    assert "again in 1 s" in lines[1]


def test_a_part_that_was_killed_starts_again(supervisor):
    first = supervisor.start(python("import time; time.sleep(60)"))
    first.kill()
    turn_until(supervisor, lambda: supervisor.process("part") not in (None, first))


def test_a_long_turn_ends_when_a_start_is_due(supervisor):
    first = supervisor.start(python("import time; time.sleep(60)"))
    first.kill()
    turn_until(supervisor, lambda: supervisor.process("part") is None)
    began = time.monotonic()
    while supervisor.process("part") is None:
        supervisor.turn(30)
    assert time.monotonic() - began < 10


def test_a_part_that_gives_up_stays_off(supervisor, capsys):
    supervisor.start(python(f"print('wrong setting'); raise SystemExit({os.EX_CONFIG})"))
    turn_until(supervisor, lambda: supervisor.process("part") is None)
    assert "wrong setting); it stays off" in capsys.readouterr().out
    assert not supervisor.wait_until(lambda: supervisor.process("part") is not None, 1, every=0.05)


def test_waiting_ends_when_the_needed_part_ends(supervisor):
    supervisor.start(python("raise SystemExit(1)"))
    began = time.monotonic()
    assert not supervisor.wait_until(lambda: False, 30, every=0.02, needs="part")
    assert time.monotonic() - began < 15


def test_a_second_interrupt_kills_at_once(supervisor):
    process = supervisor.start(python(STUBBORN, grace_seconds=50))
    turn_until(supervisor, lambda: supervisor.log("part").last_line == "up")
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    supervisor.stop(["part"])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert process.returncode == -signal.SIGKILL


def test_output_goes_to_the_log_line_by_line(supervisor, tmp_path):
    supervisor.start(python("print('one'); print('two ü', flush=True); import time; time.sleep(60)"))
    turn_until(supervisor, lambda: supervisor.log("part").last_line == "two ü")
    assert (tmp_path / "part.log").read_text() == "one\ntwo ü\n"


def test_a_log_has_a_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LOG_BYTES", 1000)
    log = PartLog("part", tmp_path, echo=False)
    for number in range(200):
        log.write(f"line {number} {'x' * 50}\n".encode())
    log.close()
    assert sum(path.stat().st_size for path in tmp_path.glob("part.log*")) <= 2100
    assert "line 199" in log.path.read_text()
