from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.tools_admin.connectors.sql.databases import (
    PASSWORD,
    READER,
    SHOP,
    TABLES,
    TcpDoor,
    connector_of,
    make_sqlite,
    postgresql,
)
from tools_admin.connectors.sql.connector import SqlConnector
from tools_admin.connectors.sql.source import Login


@pytest.fixture(scope="session")
def shop() -> Iterator[dict[str, str]]:
    with postgresql("shop_of_tests", SHOP) as address:
        yield address


@pytest.fixture(scope="session")
def door(shop: dict[str, str]) -> Iterator[TcpDoor]:
    door = TcpDoor(shop["host"], shop.get("port", "5432"))
    yield door
    door.close()


@pytest.fixture
def files(tmp_path: Path, settings) -> Path:
    settings.SQL_FILES = tmp_path / "databases"
    settings.SQL_FILES.mkdir()
    make_sqlite(settings.SQL_FILES / "shop.db", SHOP)
    return settings.SQL_FILES


@pytest.fixture
def postgresql_shop(door: TcpDoor):
    def connect(**changes) -> SqlConnector:
        config = {
            "host": "127.0.0.1",
            "port": door.port,
            "database": "shop_of_tests",
            "tables": TABLES,
        }
        login = Login(changes.pop("user", READER), SecretStr(changes.pop("password", PASSWORD)))
        return connector_of({**config, **changes}, login)

    return connect


@pytest.fixture
def sqlite_shop(files: Path):
    def connect(**changes) -> SqlConnector:
        config = {"dialect": "sqlite", "database": "shop.db", "tables": TABLES}
        return connector_of({**config, **changes}, Login())

    return connect


@pytest.fixture(params=["postgresql", "sqlite"])
def shop_connector(request):
    return request.getfixturevalue(f"{request.param}_shop")
