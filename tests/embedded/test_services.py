import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from agentapp.embedded import postgres, valkey
from agentapp.embedded.environment import ensure
from agentapp.embedded.process import PartFailed, spawn, stop, wait_until
from agentapp.embedded.testing import services


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with services(tmp_path_factory.mktemp("lent") / "var") as environment:
        yield environment


def test_every_new_database_can_hold_vectors(lent):
    with psycopg.connect(lent["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("CREATE DATABASE fresh")
    with psycopg.connect(lent["DATABASE_URL"], dbname="fresh") as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        assert connection.execute("SELECT '[1,2]'::vector <-> '[1,4]'").fetchone() == (2.0,)


def test_the_application_is_no_superuser(lent):
    with psycopg.connect(lent["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() == (False,)


def test_the_database_wants_its_password(lent):
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(lent["DATABASE_URL"], password="wrong")


def test_the_broker_answers_on_a_socket_of_ours_alone(lent):
    with redis.Redis.from_url(lent["REDIS_URL"], protocol=2) as client:
        assert client.ping()
        assert client.config_get("port") == {b"port": b"0"} or client.config_get("port") == {"port": "0"}
    socket = Path(lent["REDIS_URL"].removeprefix("unix://").split("?")[0])
    assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


def test_parts_are_gone_after_use_and_so_is_their_folder(tmp_path):
    with services(tmp_path / "var") as environment:
        url = environment["DATABASE_URL"]
    assert not (tmp_path / "var").exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=2)


def test_data_survives_a_killed_server(tmp_path):
    environment = ensure(tmp_path / "var", {"DEMO_MODEL": "none"}, database_root=Path(tempfile.gettempdir()))
    assert environment.postgres_home is not None
    part = postgres.prepare(environment)
    process = spawn(part, subprocess.DEVNULL)
    assert wait_until(lambda: postgres.ready(environment), process, 30)
    with psycopg.connect(environment.values["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (id int)")
    process.kill()
    process.wait(10)
    again = spawn(postgres.prepare(environment), subprocess.DEVNULL)
    try:
        assert wait_until(lambda: postgres.ready(environment), again, 30)
        with psycopg.connect(environment.values["DATABASE_URL"]) as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    finally:
        stop(part, again)
        shutil.rmtree(environment.postgres_home)


def test_no_existing_folder_changes_its_mode(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    before = {folder: folder.stat().st_mode for folder in (closed, *closed.parents)}
    with services(closed / "var"):
        pass
    assert {folder: folder.stat().st_mode for folder in before} == before


def test_a_database_folder_of_somebody_else_is_refused(tmp_path):
    environment = ensure(tmp_path / "var", {}, database_root=tmp_path)
    assert environment.postgres_home is not None
    environment.postgres_home.mkdir(mode=0o755)
    environment.postgres_home.chmod(0o755)
    with pytest.raises(PartFailed, match="refusing"):
        postgres.prepare(environment)


def test_there_is_no_embedded_database_beside_a_given_one(tmp_path):
    with pytest.raises(ValueError, match="DATABASE_URL"):
        postgres.prepare(ensure(tmp_path / "var", {"DATABASE_URL": "postgresql://db/app"}))


def test_valkey_keeps_its_data(tmp_path):
    environment = ensure(tmp_path / "var", {"DATABASE_URL": "postgresql://db/app"})
    for value in (None, b"kept"):
        part = valkey.prepare(environment)
        process = spawn(part, subprocess.DEVNULL)
        assert wait_until(lambda: valkey.ready(environment), process, 30)
        with redis.Redis.from_url(environment.values["REDIS_URL"], protocol=2) as client:
            assert client.get("key") == value
            client.set("key", "kept")
        stop(part, process)
        assert os.WIFEXITED(process.returncode)
