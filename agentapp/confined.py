"""Work on files of strangers, done in a child process that can hurt nobody.

    output = await confined("tools_admin.documents.pdf:read", Path("some.pdf"))

The child (`confined_child.py`) has bounds on memory, processor time, wall time and output, no environment of ours, may
not open sockets, write files or start programs, and is killed with whoever asked for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

_CHILD = Path(__file__).with_name("confined_child.py")


class Refused(Exception):
    """`code` says why there is no result: `memory`, `time`, `output`, `broken` (it raised what nobody foresaw), or
    what the function itself refused with."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Limits:
    memory: int = 1_000_000_000  # bytes of address space, libraries included
    cpu: int = 60  # seconds
    seconds: float = 120.0  # of wall time
    output: int = 50_000_000  # bytes


async def confined(
    function: str, data: bytes | Path, arguments: Mapping[str, Any] | None = None, limits: Limits | None = None
) -> bytes:
    """What the function `module:name` of ours makes of the bytes: `name(data: bytes, **arguments) -> bytes`.

    The module imports all it needs at its top, raises `Refused` with a code of its own, and `arguments` are JSON.
    Raises `Refused`; OSError when a file cannot be read.
    """
    limits = limits or Limits()
    task = {"function": function, "arguments": dict(arguments or {}), "memory": limits.memory, "cpu": limits.cpu}
    with contextlib.ExitStack() as stack:
        source: Any = subprocess.PIPE if isinstance(data, bytes) else stack.enter_context(data.open("rb"))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", str(_CHILD), str(os.getpid()), json.dumps(task)),
            stdin=source,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
        )
    try:
        async with asyncio.timeout(limits.seconds):
            output = await _exchange(process, data if isinstance(data, bytes) else None, limits.output)
            await process.wait()
    except TimeoutError:
        raise Refused("time") from None
    finally:
        if process.returncode is None:
            process.kill()
        # `wait` waits for the pipes too, and those that nobody reads to their end stay open; there is no public way.
        process._transport.close()  # type: ignore[attr-defined]
        await asyncio.shield(process.wait())
    return _result(output, cast(int, process.returncode))


async def _exchange(process: asyncio.subprocess.Process, data: bytes | None, most: int) -> bytes:
    async def write() -> None:
        if data is None:
            return
        stdin = cast(asyncio.StreamWriter, process.stdin)
        with contextlib.suppress(OSError):  # it died, which its code of return says
            stdin.write(data)
            await stdin.drain()
            stdin.close()
            await stdin.wait_closed()

    async def read() -> bytes:
        stdout, kept = cast(asyncio.StreamReader, process.stdout), bytearray()
        while part := await stdout.read(1 << 18):
            kept += part
            if len(kept) > most:
                raise Refused("output")
        return bytes(kept)

    writing = asyncio.create_task(write())
    try:
        return await read()
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


def _result(output: bytes, returned: int) -> bytes:
    """The child writes `+` and its result, or `-` and a code."""
    if returned == -signal.SIGXCPU:
        raise Refused("time")
    if returned or output[:1] not in (b"+", b"-"):
        raise Refused("memory" if returned in (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT) else "broken")
    if output[:1] == b"-":
        raise Refused(output[1:].decode())
    return output[1:]
