"""Where the embedded parts live and which secrets they use, decided once and kept in `var/env`."""

import base64
import contextlib
import fcntl
import hashlib
import os
import secrets
import socket
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from .process import PartFailed

CHECKOUT = Path(__file__).resolve().parents[2]
_SOCKET_PATH_LIMIT = 100
_HEADER = "# Generated: secrets of this installation. Keep it private; the real environment goes first.\n"


@dataclass(frozen=True)
class Environment:
    """What `ensure` decided. `values` are those of `var/env`: the embedded parts listen to nothing else."""

    var: Path
    values: Mapping[str, str]
    sockets: Path
    postgres_home: Path | None  # None: DATABASE_URL comes from outside
    valkey: bool
    demo_model: bool


def default_var() -> Path:
    """The folder of all state: `VAR_DIR`, or `var` in the checkout."""
    return Path(os.environ.get("VAR_DIR") or CHECKOUT / "var").resolve()


def private_folder(path: Path) -> Path:
    """Makes sure that `path` is a folder of mode 0700 that belongs to us, and nobody's symbolic link."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PartFailed(f"{path} does not belong to the user who runs this (uid {os.geteuid()}): refusing to use it.")
    path.chmod(0o700)
    return path


def ensure(var: Path, environ: Mapping[str, str] = os.environ, database_root: Path = Path("/var/lib")) -> Environment:
    """Creates what is missing in `var` and returns the whole; starts nothing, and a second call changes nothing.

    `database_root` only matters to root, under whom PostgreSQL needs a home that its own user can reach.
    """
    var = var.resolve()
    private_folder(var)
    with _locked(var):
        kept = read(var)
        values = dict(kept)
        sockets = private_folder(_socket_folder(var))
        _generate(values, "SECRET_KEY", lambda: secrets.token_urlsafe(48))
        _generate(values, "ENCRYPTION_KEYS", lambda: base64.urlsafe_b64encode(os.urandom(32)).decode())
        postgres_home = None if _given(environ, "DATABASE_URL") else _database(var, values, sockets, database_root)
        valkey = not _given(environ, "REDIS_URL")
        if valkey:
            values["REDIS_URL"] = f"unix://{quote(str(sockets / 'valkey.sock'))}?db=1"
        demo_model = environ.get("DEMO_MODEL", "") != "none" and not (
            _given(environ, "OPENAI_BASE_URL") or _given(environ, "OPENAI_API_KEY")
        )
        if demo_model:
            _generate(values, "DEMO_MODEL_KEY", lambda: secrets.token_urlsafe(24))
            _generate(values, "DEMO_MODEL_URL", _free_address)
        if values != kept:
            _write(var / "env", values)
    return Environment(var, values, sockets, postgres_home, valkey, demo_model)


def read(var: Path) -> dict[str, str]:
    """The lines of `var/env`."""
    path = var / "env"
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def move_demo_model(environment: Environment) -> Environment:
    """Gives the demo model another port when somebody else took the one that was remembered."""
    host, port = environment.values["DEMO_MODEL_URL"].removeprefix("http://").removesuffix("/v1").split(":")
    with contextlib.suppress(OSError), socket.create_server((host, int(port))):
        return environment
    with _locked(environment.var):
        _write(environment.var / "env", {**read(environment.var), "DEMO_MODEL_URL": _free_address()})
    return ensure(environment.var)


def _given(environ: Mapping[str, str], name: str) -> bool:
    return bool(environ.get(name) or environ.get(f"{name}_FILE"))


def _generate(values: dict[str, str], name: str, make: Callable[[], str]) -> None:
    if not values.get(name):
        values[name] = make()


def _database(var: Path, values: dict[str, str], sockets: Path, root: Path) -> Path:
    """PostgreSQL refuses to run as root: then its home is a folder that its own user can reach, remembered here.

    Its name is random: after somebody deleted `var` with the password, the old data must not be in the way.
    """
    home = var / "postgres"
    if os.geteuid() == 0:
        _generate(values, "POSTGRES_HOME", lambda: str(root / f"agentapp-{secrets.token_hex(5)}"))
        home = sockets = Path(values["POSTGRES_HOME"])
    _generate(values, "POSTGRES_PASSWORD", lambda: secrets.token_urlsafe(24))
    values["DATABASE_URL"] = (
        f"postgresql://agentapp:{values['POSTGRES_PASSWORD']}@/agentapp?host={quote(str(sockets), safe='')}"
    )
    return home


def _socket_folder(var: Path) -> Path:
    folder = var / "run"
    if len(str(folder / ".s.PGSQL.5432.lock")) <= _SOCKET_PATH_LIMIT:
        return folder
    digest = hashlib.sha256(str(var).encode()).hexdigest()[:10]
    return Path("/tmp") / f"agentapp-{os.geteuid()}-{digest}"  # noqa: S108


def _free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/v1"


def _write(path: Path, values: Mapping[str, str]) -> None:
    fresh = path.with_name("env.new")
    fresh.unlink(missing_ok=True)
    text = _HEADER + "".join(f"{name}={value}\n" for name, value in values.items())
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    try:
        ensure(default_var())
    except PartFailed as error:
        sys.exit(str(error))
