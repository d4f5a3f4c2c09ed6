"""What `test_confined.py` has done in a confined child."""

import ctypes
import os
import socket
import subprocess
import time
from pathlib import Path

from agentapp.confined import Refused


def backwards(data: bytes, suffix: str) -> bytes:
    return data[::-1] + suffix.encode()


def refuse(data: bytes) -> bytes:
    raise Refused("why")


def eat_memory(data: bytes) -> bytes:
    return b"x" * 1_000_000_000


def burn(data: bytes) -> bytes:
    while True:
        pass


def chatter(data: bytes) -> bytes:
    return b"x" * 2_000_000


def stumble(data: bytes) -> bytes:
    raise KeyError("nobody foresaw this")


def crash(data: bytes) -> bytes:
    os.abort()


def sleep(data: bytes) -> bytes:
    time.sleep(60)
    return b""


def environment(data: bytes) -> bytes:
    return repr(dict(os.environ)).encode()


def connect(data: bytes, path: str, port: int) -> bytes:
    return _caught(lambda: socket.create_connection(("127.0.0.1", port), 2))


def write_a_file(data: bytes, path: str, port: int) -> bytes:
    return _caught(lambda: Path(path).write_text("overwritten"))


def read_a_secret(data: bytes, path: str, port: int) -> bytes:
    return _caught(lambda: Path(path).read_text())


def start_a_program(data: bytes, path: str, port: int) -> bytes:
    return _caught(lambda: subprocess.run(["true"], check=False))


def load_a_library(data: bytes, path: str, port: int) -> bytes:
    return _caught(lambda: ctypes.CDLL(None))


def _caught(effect) -> bytes:
    try:
        return repr(effect()).encode()
    except OSError as error:
        return repr(error).encode()
