"""`manage.py up`: the whole installation in one process group.

The order is that of the fastest start: database and broker come up while Django is imported, web and worker are
started when the schema is current, the demo model when the page can already be opened.
"""

import argparse
import fcntl
import http.client
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import psycopg
import redis

from . import demo_model, postgres, valkey
from .environment import CHECKOUT, Environment, default_var, ensure, move_demo_model, private_folder
from .process import Part, PartFailed
from .supervisor import Supervisor, say

_DATA_PARTS_SECONDS = 60.0
_READY_SECONDS = 60.0
_OLD_PARTS_SECONDS = 30.0


def main(arguments: Sequence[str]) -> int:
    """Runs until interrupted. Returns the exit code; whatever goes wrong at the start is one line on stderr."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(prog="manage.py up", description="Starts everything; Ctrl-C stops it.")
    parser.add_argument("-v", "--verbose", action="store_true", help="also print what the parts log")
    verbose = parser.parse_args(arguments).verbose
    try:
        var = private_folder(default_var())
        _only_one(var)
        with _listen() as web_socket:
            environment = ensure(var)
            os.environ.update(VAR_DIR=str(var), DJANGO_SETTINGS_MODULE="agentapp.settings", PYTHONUNBUFFERED="1")
            _run(Supervisor(private_folder(var / "log"), _parts_lock(var), verbose), environment, web_socket, began)
    except PartFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(supervisor: Supervisor, environment: Environment, web_socket: socket.socket, began: float) -> None:
    try:
        _start(supervisor, environment, web_socket, began)
        while not supervisor.interrupts:
            supervisor.turn(60)
        say("Stopping …")
    finally:
        supervisor.stop(["web", "worker", "demo_model"])
        supervisor.stop(["valkey", "postgres"])
        supervisor.close()
    say("Stopped.")


def _start(supervisor: Supervisor, environment: Environment, web_socket: socket.socket, began: float) -> None:
    data: list[tuple[str, Callable[[Environment], bool]]] = []
    if environment.postgres_home is not None:
        supervisor.start(postgres.prepare(environment))
        data.append(("postgres", postgres.ready))
    if environment.valkey:
        supervisor.start(valkey.prepare(environment))
        data.append(("valkey", valkey.ready))
    if environment.demo_model:
        environment = move_demo_model(environment)  # before settings are read: the database must name this address
    state, message = ("verifying", "Starting the demo model") if environment.demo_model else ("off", "")
    demo_model.write_status(environment.var, state, message=message)
    import django

    django.setup()
    for name, ready in data:
        if not supervisor.wait_until(partial(ready, environment), _DATA_PARTS_SECONDS, every=0.02, needs=name):
            if supervisor.interrupts:
                return
            log = supervisor.log(name)
            raise PartFailed(f"{name} did not start: {log.last_line or 'it gave no reason'}. Log: {log.path}")
    _check_given_servers()
    setup_path = _prepare_database()
    supervisor.start(_web(web_socket), inherit=[web_socket.fileno()])
    supervisor.start(_worker())
    _report(supervisor, web_socket, setup_path, began)
    if environment.demo_model and not supervisor.interrupts:
        supervisor.start(demo_model.part(environment))


def _check_given_servers() -> None:
    """Servers that somebody else runs must answer now: later on, a missing one is waited for."""
    from django.conf import settings

    from agentapp.settings import env

    try:
        psycopg.connect(env.database_url, connect_timeout=3).close()
    except psycopg.Error as error:
        raise PartFailed(f"The server of DATABASE_URL does not let us in: {_first_line(error)}") from error
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=3, protocol=2) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise PartFailed(f"The server of REDIS_URL does not let us in: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _prepare_database() -> str | None:
    """Brings the schema up to date in this process, and returns the path of the first-start page, if that is open."""
    from django.core.management import call_command
    from django.db import Error, connections

    from accounts import services

    try:
        call_command("migrate", verbosity=0, interactive=False)
        if os.environ.get("ADMIN_USERNAME") and os.environ.get("ADMIN_PASSWORD"):
            services.ensure_admin(os.environ["ADMIN_USERNAME"], os.environ["ADMIN_PASSWORD"])
        return services.setup_link()
    except Error as error:
        raise PartFailed(f"The database cannot be prepared: {_first_line(error)}") from error
    finally:
        # No threads may be left: this process forks.
        for connection in connections.all(initialized_only=True):
            connection.close()
            connection.close_pool()  # type: ignore[attr-defined]


def _report(supervisor: Supervisor, web_socket: socket.socket, setup_path: str | None, began: float) -> None:
    host, port = web_socket.getsockname()
    reachable = "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104
    address = f"http://{reachable}:{port}"
    if supervisor.wait_until(lambda: _problem(reachable, port) is None, _READY_SECONDS, every=0.1):
        say(f"Ready in {time.monotonic() - began:.1f} s: {address}/")
    elif supervisor.interrupts:
        return
    else:
        logs = ", ".join(str(supervisor.log(name).path) for name in ("web", "worker"))
        say(f"Not ready after {_READY_SECONDS:g} s ({_problem(reachable, port)}): {address}/ Logs: {logs}")
    if setup_path:
        say(f"First start: create the administrator at {address}{setup_path}")


def _problem(host: str, port: int) -> str | None:
    """What `/readyz` complains about; none when all is well."""
    from django.conf import settings

    allowed = [name for name in settings.ALLOWED_HOSTS if not name.startswith(("*", "."))]
    client = http.client.HTTPConnection(host, port, timeout=2)
    try:
        client.request("GET", "/readyz", headers={"Host": allowed[0] if allowed else host})
        response = client.getresponse()
        body = response.read(500).decode(errors="replace")
        return None if response.status == 200 else f"/readyz says {response.status} {body}"
    except OSError as error:
        return f"the web part does not answer: {error}"
    finally:
        client.close()


def _web(web_socket: socket.socket) -> Part:
    """The listening socket is ours: a restart of the web part loses no connection, and nobody takes the port."""
    argv = [sys.executable, "-m", "agentapp.web", "--fd", str(web_socket.fileno())]
    return Part("web", argv, cwd=CHECKOUT)


def _worker() -> Part:
    return Part("worker", [sys.executable, "-m", "agentapp.worker"], cwd=CHECKOUT, grace_seconds=25)


def _listen() -> socket.socket:
    host, port = os.environ.get("HOST") or "127.0.0.1", os.environ.get("PORT") or "8000"
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise PartFailed(f"PORT={port} is no port: use a number from 1 to 65535.")
    try:
        return socket.create_server((host, int(port)), backlog=128)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise PartFailed(f"Cannot listen on {host}:{port} ({reason}): choose another with PORT=….") from error


def _only_one(var: Path) -> None:
    """Takes the lock of the running `up`; it is free as soon as that process is gone, however it ended."""
    lock = os.open(var / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        running = os.read(lock, 100).decode() or "unknown"
        os.close(lock)
        raise PartFailed(f"Already running from this checkout (process {running}): stop it first.") from None
    os.truncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def _parts_lock(var: Path) -> int:
    """A lock that all parts inherit, so that it is free when the last part of an earlier start has ended.

    Two servers on the same data would damage it; after a crash the old ones may need a moment.
    """
    lock = os.open(var / "parts.lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + _OLD_PARTS_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise PartFailed(
                    f"Parts of an earlier start still run after {_OLD_PARTS_SECONDS:g} s: "
                    f"`fuser {var / 'parts.lock'}` shows them."
                ) from None
            time.sleep(0.05)
