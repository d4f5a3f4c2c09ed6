"""Databases for the tests of the kind sql: a small record shop of our own, and Chinook where it is at hand."""

import asyncio
import base64
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tools_admin.connectors.base import Authorization, Setup
from tools_admin.connectors.sql.connector import SqlConnector
from tools_admin.connectors.sql.source import Login

SHARED = Path(__file__).parents[5] / "shared" / "data" / "sqldata"
READER, PASSWORD = "shop_reader", "only for reading"

SHOP = """
CREATE TABLE artist (artist_id integer PRIMARY KEY, name varchar(120) NOT NULL);
CREATE TABLE album (album_id integer PRIMARY KEY, title varchar(160), artist_id integer REFERENCES artist (artist_id));
CREATE TABLE genre (genre_id integer PRIMARY KEY, name varchar(120));
CREATE TABLE track (
    track_id integer PRIMARY KEY, name varchar(200) NOT NULL, album_id integer REFERENCES album (album_id),
    genre_id integer REFERENCES genre (genre_id), composer varchar(200), milliseconds integer, price numeric(10, 2)
);
CREATE TABLE "Mixed Case" ("Odd Column" integer, "select" integer);
CREATE TABLE secret (password varchar(20));
INSERT INTO artist VALUES (1, 'The Kites'), (2, 'Nord');
INSERT INTO album VALUES (1, 'Up', 1), (2, 'Winter', 2);
INSERT INTO genre VALUES (1, 'Rock'), (2, 'Jazz'), (3, 'Folk');
INSERT INTO track VALUES (1, 'Fly', 1, 1, 'Ada', 200000, 0.99), (2, 'Float', 1, 1, NULL, 250001, 1.99),
    (3, 'Snow', 2, 2, 'Bo', 300000, 0.49), (4, 'Long_Night', 2, 1, 'Bo', 420000, 1.29);
INSERT INTO "Mixed Case" VALUES (1, 2);
INSERT INTO secret VALUES ('opensesame');
"""
TABLES = ["artist", "album", "genre", "track", "Mixed Case"]


def make_sqlite(path: Path, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


@contextmanager
def postgresql(name: str, script: str) -> Iterator[dict[str, str]]:
    """A database of its own with a role that may only read it; gives the parts of its administrator's address."""
    # The tests' own server has a superuser with the same password.
    own = conninfo_to_dict(os.environ["DATABASE_URL"])
    admin = {key: str(value) for key, value in {**own, "user": "postgres", "dbname": "postgres"}.items()}
    identifier = sql.Identifier(name)
    with psycopg.connect(**admin, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(identifier))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(identifier))
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [READER]).fetchone():
            connection.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(READER), sql.Literal(PASSWORD))
            )
    mine = {**admin, "dbname": name}
    try:
        with psycopg.connect(**mine, autocommit=True) as connection:
            connection.execute(script.encode())
            connection.execute(
                sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}").format(sql.Identifier(READER))
            )
        yield mine
    finally:
        with psycopg.connect(**admin, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(identifier))


class TcpDoor:
    """A port on loopback before the embedded server, which listens on a socket file only."""

    def __init__(self, directory: str, port: str) -> None:
        self._path = str(Path(directory) / f".s.PGSQL.{port}")
        self._open = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), daemon=True)
        self._thread.start()
        self._open.wait(10)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(10)

    async def _live(self) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = server.sockets[0].getsockname()[1]
        self._open.set()
        await self._closing.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(self._path)
        await asyncio.gather(self._pump(reader, inner_writer), self._pump(inner_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65_536):
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


def connector_of(config: dict[str, Any], login: Login) -> SqlConnector:
    """A connector with these settings, signed in by `login` as its form of HTTP has it."""
    seconds = config.pop("seconds", 20.0)
    both = base64.b64encode(f"{login.user}:{login.password.get_secret_value()}".encode()).decode()

    async def authorize(url: str, wanted: object = None) -> Authorization:
        assert url == f"postgresql://{config['host']}:{config['port']}"
        return Authorization(headers={"Authorization": f"Basic {both}"}, secrets=(both,))

    return SqlConnector(Setup(config, frozenset({"127.0.0.1"}), seconds, authorize))


def statements(name: str) -> list[str]:
    """The lines of a file in tests/data/sql."""
    text = (Path(__file__).parents[3] / "data" / "sql" / f"{name}.txt").read_text()
    return [line.replace("\\n", "\n") for line in text.splitlines() if not line.startswith("#")]
