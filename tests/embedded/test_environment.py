import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentapp.embedded.environment import ensure, move_demo_model, private_folder, read
from agentapp.embedded.process import PartFailed

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def var(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "var"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_made_once_and_are_private(var):
    first = ensure(var, {})
    second = ensure(var, {})
    assert first == second
    assert len(first.values["SECRET_KEY"]) >= 50
    assert {"ENCRYPTION_KEYS", "DATABASE_URL", "REDIS_URL", "DEMO_MODEL_URL", "DEMO_MODEL_KEY"} <= first.values.keys()
    assert mode(var / "env") == 0o600
    assert mode(var) == 0o700


def test_two_installations_share_nothing(tmp_path):
    one, other = ensure(tmp_path / "one", {}), ensure(tmp_path / "other", {})
    assert not set(one.values.values()) & set(other.values.values())


def test_simultaneous_first_calls_agree(var):
    program = (
        f"from pathlib import Path; from agentapp.embedded.environment import ensure; ensure(Path({str(var)!r}), {{}})"
    )
    calls = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(4)]
    assert [call.wait(20) for call in calls] == [0, 0, 0, 0]
    kept = read(var)
    assert ensure(var, {}).values == kept


def test_what_the_environment_brings_is_neither_written_nor_embedded(var):
    given = {"DATABASE_URL": "postgresql://db/app", "REDIS_URL": "redis://cache", "OPENAI_API_KEY": "key"}
    environment = ensure(var, given)
    assert environment.postgres_home is None
    assert not environment.valkey
    assert not environment.demo_model
    assert read(var).keys() == {"SECRET_KEY", "ENCRYPTION_KEYS"}


def test_a_secret_in_a_file_replaces_the_embedded_part_too(var):
    assert ensure(var, {"DATABASE_URL_FILE": "/run/secrets/url"}).postgres_home is None


def test_demo_model_can_be_refused(var):
    assert not ensure(var, {"DEMO_MODEL": "none"}).demo_model


def test_socket_paths_stay_short_in_a_deep_folder(tmp_path):
    deep = tmp_path / ("d" * 100)
    environment = ensure(deep, {})
    try:
        assert len(str(environment.sockets / ".s.PGSQL.5432.lock")) <= 100
        assert mode(environment.sockets) == 0o700
    finally:
        environment.sockets.rmdir()


def test_a_symbolic_link_is_refused_as_private_folder(tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(PartFailed, match="does not belong"):
        private_folder(tmp_path / "link")


@as_root
def test_somebody_elses_folder_is_refused(tmp_path):
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    with pytest.raises(PartFailed, match="does not belong"):
        ensure(tmp_path / "theirs", {})


@as_root
def test_root_gets_a_database_folder_outside_the_checkout_and_remembers_it(var, tmp_path):
    home = ensure(var, {}, database_root=tmp_path / "lib").postgres_home
    assert home is not None
    assert home.parent == tmp_path / "lib"
    assert ensure(var, {}, database_root=tmp_path / "elsewhere").postgres_home == home


def test_the_demo_model_moves_when_its_port_is_taken(var, monkeypatch):
    for name in ("DATABASE_URL", "REDIS_URL", "DEMO_MODEL"):
        monkeypatch.delenv(name, raising=False)
    environment = ensure(var)
    assert move_demo_model(environment).values == environment.values
    port = int(environment.values["DEMO_MODEL_URL"].rsplit(":", 1)[1].removesuffix("/v1"))
    with socket.create_server(("127.0.0.1", port)):
        moved = move_demo_model(environment)
    assert moved.values["DEMO_MODEL_URL"] != environment.values["DEMO_MODEL_URL"]
    assert read(var)["DEMO_MODEL_URL"] == moved.values["DEMO_MODEL_URL"]


def test_a_password_in_the_environment_is_not_taken_for_the_embedded_database(var):
    secret = ensure(var, {}).values["POSTGRES_PASSWORD"]
    assert ensure(var, {"POSTGRES_PASSWORD": "of another program"}).values["POSTGRES_PASSWORD"] == secret


@as_root
def test_data_whose_password_was_deleted_is_not_in_the_way(var, tmp_path):
    first = ensure(var, {}, database_root=tmp_path).postgres_home
    shutil.rmtree(var)
    assert ensure(var, {}, database_root=tmp_path).postgres_home != first
