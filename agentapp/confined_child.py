"""The child of `confined.py`: gives away what it does not need, then calls one function with what it reads.

Run as a file by the worker's Python (`-I`). What holds here: limits of the kernel for time, memory and files; Python's
audit hook for everything that leaves the process, which suffices for libraries written in Python; and, where the
kernel lets us, a network of our own without anything in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000

_FORBIDDEN = ("socket.", "subprocess.", "os.", "ctypes.", "shutil.", "urllib.", "ftplib.", "smtplib.", "pty.")
_HARMLESS = ("os.listdir", "os.scandir", "os.walk", "os.fwalk", "socket.gethostname")


def main() -> None:
    parent, task = int(sys.argv[1]), json.loads(sys.argv[2])
    _die_with(parent)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from agentapp.confined import Refused

    module, _, name = task["function"].partition(":")
    function = getattr(importlib.import_module(module), name)
    sys.path.pop(0)  # our own folder holds settings and secrets, too
    data = sys.stdin.buffer.read()
    _confine(task["memory"], task["cpu"])
    try:
        answer = b"+" + function(data, **task["arguments"])
    except Refused as refused:
        answer = b"-" + refused.code.encode()
    except MemoryError:
        answer = b"-memory"
    except Exception:  # noqa: BLE001 (a file made by whoever: the libraries raise anything)
        answer = b"-broken"
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    os._exit(0)


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if libc.unshare(CLONE_NEWNET) != 0:  # only root may do it so
            libc.unshare(CLONE_NEWUSER | CLONE_NEWNET)  # refused in most containers
    if os.getppid() != parent:  # it died before the lines above
        sys.exit(1)


def _confine(memory: int, cpu: int) -> None:
    os.nice(10)  # people waiting for pages come first
    limits = {resource.RLIMIT_CPU: cpu, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0, resource.RLIMIT_AS: memory}
    for limit, value in limits.items():
        with contextlib.suppress(ValueError):  # macOS knows no bound of the address space
            resource.setrlimit(limit, (value, value + 5 if limit == resource.RLIMIT_CPU else value))
    readable = tuple(f"{folder}/" for folder in {*sys.path, sys.base_prefix} if folder)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            changing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
            writes = not {*str(mode or "")}.isdisjoint("wxa+") or bool(isinstance(flags, int) and flags & changing)
            # Modules and tables of the libraries may be read, and nothing else.
            if writes or not os.path.abspath(str(path)).startswith(readable):  # noqa: PTH100 (no look at the disk)
                raise PermissionError(f"a confined process opens nothing: {path}")
        elif event.startswith(_FORBIDDEN) and event not in _HARMLESS:
            raise PermissionError(f"a confined process may not: {event}")

    sys.addaudithook(watch)


if __name__ == "__main__":
    main()
