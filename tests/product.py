"""The whole product as real processes for tests and benchmarks: web, workers, a fake model endpoint."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from agentapp.embedded.process import Part, spawn
from agentapp.environment import Environment
from tests.fake_model import Brain, FakeModel, think

ROOT = Path(__file__).resolve().parent.parent
WEB = ["-m", "agentapp.web", "-b", "127.0.0.1"]
WORKER = ["-m", "agentapp.worker"]
# The intervals that an installation has if nobody sets them; tests have shorter ones, which cost processor time.
AS_SHIPPED = {
    name.upper(): str(Environment.model_fields[name].default)
    for name in ("run_lease_seconds", "run_heartbeat_seconds", "sweep_seconds", "queued_age_seconds")
}


def eventually(check: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    """The first truthy value of `check()`; fails with `what` when there is none in time (long: machines are busy)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := check():
            return value
        time.sleep(0.05)
    raise AssertionError(f"Not within {seconds} s: {what}")


class Product:
    """Processes of one installation. `environment` must name PostgreSQL and Valkey that run already."""

    def __init__(self, environment: dict[str, str], folder: Path, model: FakeModel, database: str = "product") -> None:
        self.model, self.folder = model, folder
        url = urlsplit(environment["DATABASE_URL"])
        self.database_url = urlunsplit(url._replace(path=f"/{database}"))
        with psycopg.connect(environment["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "{database}"')
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **os.environ,
            **environment,
            "DATABASE_URL": self.database_url,
            "OPENAI_BASE_URL": model.url,
            "OPENAI_API_KEY": "test",
            "OPENAI_MODEL": "fake-model",
            "RUN_LEASE_SECONDS": "3",
            "RUN_HEARTBEAT_SECONDS": "0.5",
            "SWEEP_SECONDS": "1",
            "QUEUED_AGE_SECONDS": "1",
            "RATE_REQUESTS": "0",  # tests ask again and again
            "RATE_MESSAGES": "0",
            "MODEL_PAUSE_SECONDS": "1",
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.brain: Brain = think  # how the model answers after `restore`
        self.commands = {
            "web": [*WEB, "-p", str(self.port)],
            "worker": [*WORKER],
        }

    def start(self) -> None:
        self.manage("migrate", "--verbosity", "0")
        self._make_people()
        self.restore()

    def restore(self) -> None:
        """Starts what is not running, and makes the model answer at once again."""
        for name, command in self.commands.items():
            if name not in self.processes or self.processes[name].poll() is not None:
                self.spawn(name, command)
        self.model.token_delay, self.model.brain = 0.0, self.brain
        self.model.start()
        eventually(self.is_ready, f"the product is ready; logs are in {self.folder}")

    def add_web(self, name: str) -> str:
        """Another web process of the same installation, for as long as the test keeps it. Gives its address."""
        port = free_port()
        self.spawn(name, [*WEB, "-p", str(port)])
        url = f"http://127.0.0.1:{port}"
        eventually(lambda: self.is_ready(url), f"{name} is ready")
        return url

    def is_ready(self, url: str = "") -> bool:
        try:
            with urllib.request.urlopen(f"{url or self.url}/readyz", timeout=5) as answer:  # noqa: S310 - loopback
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def spawn(self, name: str, arguments: list[str], **environment: str) -> "subprocess.Popen[bytes]":
        """Starts a process that never outlives this one; `environment` is for it alone."""
        log = (self.folder / f"{name}.log").open("ab")
        part = Part(name, [sys.executable, *arguments], self.environment | environment, ROOT)
        with log:
            self.processes[name] = spawn(part, log)
        return self.processes[name]

    def end(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait(60)

    def stop(self) -> None:
        for name in list(self.processes):
            self.end(name)

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(f"{' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def person(self, *, staff: bool = False) -> "Person":
        """A fresh person, signed in, with an API key; `staff` is an administrator."""
        if not (self._administrators if staff else self._people):
            self._make_people()
        return (self._administrators if staff else self._people).pop()

    def sql(self, query: str, *parameters: object) -> list[Any]:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(query, parameters).fetchall()

    def execute(self, statement: str, *parameters: object) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(statement, parameters)

    def _make_people(self) -> None:
        people = [Person(**row) for row in json.loads(self.manage("shell", "--no-imports", "-c", MAKE_PEOPLE))]
        self._administrators = [person for person in people if person.staff]
        self._people = [person for person in people if not person.staff]


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    username: str
    password: str
    key: str
    session: str
    staff: bool

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


MAKE_PEOPLE = """
import json, secrets
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.backends.db import SessionStore
from accounts.models import User
from accounts.services import create_api_key
people, password = [], secrets.token_urlsafe(12)
hashed = make_password(password)
for number in range(80):
    staff, name = number < 8, f"person-{secrets.token_hex(6)}"
    rights = {"is_staff": staff, "is_superuser": staff}
    user = User.objects.create(username=name, email=f"{name}@example.org", password=hashed, **rights)
    session = SessionStore()
    session.update({
        SESSION_KEY: str(user.pk),
        BACKEND_SESSION_KEY: "allauth.account.auth_backends.AuthenticationBackend",
        HASH_SESSION_KEY: user.get_session_auth_hash(),
    })
    session.create()
    people.append({"id": user.pk, "username": user.username, "password": password,
                   "key": create_api_key(user, "test")[1], "session": session.session_key, "staff": staff})
print(json.dumps(people))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
