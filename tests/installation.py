"""A product with PostgreSQL and Valkey of its own, for tests that take them away."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from agentapp.embedded import postgres, valkey
from agentapp.embedded.environment import Environment, ensure
from agentapp.embedded.process import Part, spawn, stop, wait_until
from tests.fake_model import FakeModel
from tests.product import Product


class Installation(Product):
    """`down` and `up` stop a part and start it again."""

    def __init__(self, folder: Path, model: FakeModel) -> None:
        self.own = ensure(folder, environ={"DEMO_MODEL": "none"}, database_root=Path(tempfile.gettempdir()))
        self.parts: dict[str, tuple[Part, Callable[[Environment], bool]]] = {
            "postgres": (postgres.prepare(self.own), postgres.ready),
            "valkey": (valkey.prepare(self.own), valkey.ready),
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.part_log = (folder / "parts.log").open("ab")
        self.up("postgres")
        self.up("valkey")
        super().__init__({**self.own.values, "VAR_DIR": str(folder), "DEMO_MODEL": "none"}, folder, model)

    def up(self, name: str) -> None:
        part, ready = self.parts[name]
        self.running[name] = spawn(part, self.part_log)
        assert wait_until(lambda: ready(self.own), self.running[name], 90), f"{name} did not start"

    def down(self, name: str) -> None:
        stop(self.parts[name][0], self.running.pop(name))

    def close(self) -> None:
        self.stop()
        for name in list(self.running):
            self.down(name)
        self.part_log.close()
        for folder in (self.own.sockets, self.own.postgres_home):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
