"""Runs a group of parts: keeps their logs, restarts what dies, stops all in order."""

import logging
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from logging.handlers import RotatingFileHandler
from pathlib import Path

from .process import Part, spawn

_LOG_BYTES = 5_000_000
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 30.0
_HEALTHY_SECONDS = 30.0  # a part that lived so long starts again without delay


class PartLog:
    """The output of a part: a file of bounded size and, on request, the terminal."""

    def __init__(self, name: str, folder: Path, echo: bool) -> None:
        self.path = folder / f"{name}.log"
        self.last_line = ""
        self._name, self._echo, self._rest = name, echo, b""
        self._handler = RotatingFileHandler(self.path, maxBytes=_LOG_BYTES, backupCount=1)

    def write(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace").rstrip()
            self.last_line = text or self.last_line
            self._handler.emit(logging.makeLogRecord({"msg": text}))
            if self._echo:
                print(f"{self._name:>10} | {text}", flush=True)

    def close(self) -> None:
        self._handler.close()


class _Member:
    """A part of the group with its process, log and the time of its next start."""

    def __init__(self, part: Part, log: PartLog, inherit: Sequence[int]) -> None:
        self.part, self.log, self.inherit = part, log, inherit
        self.process: subprocess.Popen[bytes] | None = None
        self.reader = -1
        self.started = 0.0
        self.delay = _FIRST_DELAY
        self.next_start: float | None = None


class Supervisor:
    """Use it from the main thread and call `turn` in a loop; nothing happens in between.

    `lock` is a descriptor that every part holds open: it shows whether any of them still lives.
    """

    def __init__(self, logs: Path, lock: int, verbose: bool = False) -> None:
        self.interrupts = 0
        self._logs, self._lock, self._verbose = logs, lock, verbose
        self._members: dict[str, _Member] = {}
        self._selector = selectors.DefaultSelector()
        self._stopping = False
        self._awaited: str | None = None
        self._wakeup, self._wakeup_writer = socket.socketpair()
        self._listen_to_signals()

    def start(self, part: Part, inherit: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        """Starts a part and keeps it running from now on."""
        member = _Member(part, PartLog(part.name, self._logs, self._verbose), (self._lock, *inherit))
        self._members[part.name] = member
        return self._spawn(member)

    def turn(self, timeout: float) -> None:
        """Waits for output, signals or the end of a part, at most `timeout` seconds, and does what follows from it."""
        starts = [member.next_start - time.monotonic() for member in self._members.values() if member.next_start]
        for key, _ in self._selector.select(max(0, min([timeout, *starts]))):
            key.data()
        for member in self._members.values():
            if member.process is not None and member.process.poll() is not None:
                self._ended(member, member.process)
            if member.next_start is not None and time.monotonic() >= member.next_start:
                self._spawn(member)

    def wait_until(self, ready: Callable[[], bool], seconds: float, every: float, needs: str | None = None) -> bool:
        """Asks `every` so often until `ready`, and turns meanwhile.

        False when time is over, somebody interrupts, or the part that it `needs` ended: then the caller says so.
        """
        self._awaited = needs
        deadline = time.monotonic() + seconds
        while not self.interrupts and not ready():
            ask_again = time.monotonic() + every
            while (rest := ask_again - time.monotonic()) > 0 and not self.interrupts:
                self.turn(rest)
            if time.monotonic() > deadline or (needs is not None and self.process(needs) is None):
                return False
        self._awaited = None
        return not self.interrupts

    def log(self, name: str) -> PartLog:
        return self._members[name].log

    def process(self, name: str) -> subprocess.Popen[bytes] | None:
        """The part's process; none between its end and its next start."""
        return self._members[name].process

    def stop(self, names: Iterable[str]) -> None:
        """Stops these parts together and waits for them; a further interrupt kills them at once."""
        self._stopping = True
        for member in self._members.values():
            member.next_start = None
        interrupts = self.interrupts
        began = time.monotonic()
        members = [self._members[name] for name in names if name in self._members]
        for member in members:
            if member.process is not None:
                member.process.send_signal(member.part.stop_signal)
        while alive := [member for member in members if member.process is not None]:
            for member in alive:
                over = time.monotonic() - began > member.part.grace_seconds
                if member.process is not None and (over or self.interrupts > interrupts):
                    member.process.kill()
            self.turn(0.1)

    def close(self) -> None:
        """Lets go of logs and signals, after all parts are stopped."""
        signal.set_wakeup_fd(-1)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, int):
                os.close(key.fileobj)
        self._selector.close()
        self._wakeup.close()
        self._wakeup_writer.close()
        for member in self._members.values():
            member.log.close()

    def _spawn(self, member: _Member) -> subprocess.Popen[bytes]:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        try:
            member.process = spawn(member.part, writer, member.inherit)
        finally:
            os.close(writer)
        member.reader, member.started, member.next_start = reader, time.monotonic(), None
        self._selector.register(reader, selectors.EVENT_READ, lambda: self._read(reader, member.log))
        return member.process

    def _read(self, reader: int, log: PartLog) -> bool:
        """Takes what the pipe holds now; false when there is nothing more."""
        try:
            data = os.read(reader, 1 << 16)
        except BlockingIOError:
            return False
        if data:
            log.write(data)
            return True
        self._selector.unregister(reader)
        os.close(reader)
        return False

    def _ended(self, member: _Member, process: subprocess.Popen[bytes]) -> None:
        code = process.returncode
        member.process = None
        # Its last words may have come after the selector looked.
        while member.reader in self._selector.get_map() and self._read(member.reader, member.log):
            pass
        if self._stopping:
            return
        if member.part.name == self._awaited:
            return
        how = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
        what = f"{member.part.name} stopped ({how}{f': {member.log.last_line}' if code else ''})"
        if code == os.EX_CONFIG:
            say(f"{what}; it stays off. Log: {member.log.path}")
            return
        if time.monotonic() - member.started > _HEALTHY_SECONDS:
            member.delay = _FIRST_DELAY
        member.next_start = time.monotonic() + member.delay
        say(f"{what}; again in {member.delay:g} s. Log: {member.log.path}")
        member.delay = min(member.delay * 2, _LONGEST_DELAY)

    def _listen_to_signals(self) -> None:
        for end in (self._wakeup, self._wakeup_writer):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wakeup_writer.fileno())
        self._selector.register(self._wakeup, selectors.EVENT_READ, lambda: self._wakeup.recv(1024))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._interrupted)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler is needed for the wake-up

    def _interrupted(self, *_: object) -> None:
        self.interrupts += 1


def say(text: str) -> None:
    print(text, flush=True)
