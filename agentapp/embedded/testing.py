"""PostgreSQL and Valkey for a test session, in a folder of their own that is gone afterwards.

`python -m agentapp.embedded.testing COMMAND …` lends them to any command.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from . import postgres, valkey
from .environment import Environment, ensure, private_folder
from .process import Part, spawn, stop, wait_until

# Tests need no durability across a power cut.
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "200"}


@contextlib.contextmanager
def services(var: Path | None = None) -> Iterator[dict[str, str]]:
    """Starts both and yields the environment that settings need (`DATABASE_URL`, `REDIS_URL`, secrets, `VAR_DIR`).

    Looks at nothing outside `var` (a fresh folder by default), so that neither a running installation nor the
    caller's environment leaks into a test. Call it from the main thread.
    """
    folder = Path(tempfile.mkdtemp(prefix="agentapp-test-")) if var is None else var
    environment = ensure(folder, environ={"DEMO_MODEL": "none"}, database_root=Path(tempfile.gettempdir()))
    with contextlib.ExitStack() as stack:
        stack.callback(_remove, environment)
        logs = private_folder(folder / "log")
        for part, ready in (
            (postgres.prepare(environment, _FAST), postgres.ready),
            (valkey.prepare(environment), valkey.ready),
        ):
            stack.enter_context(_running(part, ready, environment, logs))
        wanted = ("SECRET_KEY", "ENCRYPTION_KEYS", "DATABASE_URL", "REDIS_URL")
        yield {**{name: environment.values[name] for name in wanted}, "VAR_DIR": str(folder), "DEMO_MODEL": "none"}


@contextlib.contextmanager
def _running(part: Part, ready: Callable[[Environment], bool], environment: Environment, logs: Path) -> Iterator[None]:
    log = logs / f"{part.name}.log"
    with log.open("ab") as output:
        process = spawn(part, output)
    try:
        if not wait_until(lambda: ready(environment), process, seconds=60):
            raise RuntimeError(f"{part.name} did not start:\n{log.read_text()}")
        yield
    finally:
        stop(part, process)


def _remove(environment: Environment) -> None:
    for folder in (environment.var, environment.sockets, environment.postgres_home):
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    with services() as lent:
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **lent}, check=False).returncode)
