"""Child processes that never outlive their parent."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1
_prctl = getattr(
    ctypes.CDLL(None), "prctl", None
)  # Linux only; resolved here because a forked child must not look it up


class PartFailed(Exception):
    """A part cannot be started; the message is one line for a person."""


@dataclass(frozen=True)
class Part:
    """One process of the group: how to start it, and how it wants to be stopped."""

    name: str
    argv: Sequence[str]
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: Path = Path("/")
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGKILL
    grace_seconds: float = 5
    user: int | None = None
    group: int | None = None


def spawn(part: Part, output: int | IO[bytes], inherit: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Starts the part in a session of its own, so that Ctrl-C reaches the parent alone.

    Call it from the main thread only: the kernel sends the orphan signal when the *thread* that spawned ends.
    """
    parent = os.getpid()

    def die_with_parent() -> None:
        # Runs after the change of user, which would clear the setting.
        if _prctl is not None:
            _prctl(_PR_SET_PDEATHSIG, int(part.orphan_signal), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return subprocess.Popen(
        part.argv,
        env=dict(part.environ),
        cwd=part.cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=die_with_parent,
        pass_fds=tuple(inherit),
        user=part.user,
        group=part.group,
        extra_groups=None if part.group is None else [],
    )


def stop(part: Part, process: subprocess.Popen[bytes]) -> None:
    """Asks the part to end, and ends it when the grace time is over."""
    if process.poll() is None:
        process.send_signal(part.stop_signal)
    try:
        process.wait(part.grace_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Waits for a part to answer; false when it ended or the time is over."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        if ready():
            return True
        time.sleep(0.02)
    return False
