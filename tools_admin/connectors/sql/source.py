"""One database: how it is reached, and by which of its own means it is kept from changing anything."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy
from pydantic import SecretStr
from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from tools_admin.connectors.base import ConnectorError, ConnectorUnavailable
from tools_admin.connectors.sql.functions import allowed_functions
from tools_admin.connectors.sql.guard import Table
from tools_admin.connectors.sql.settings import SqlSettings, sqlite_file

CONNECT_SECONDS = 10
MAX_VALUE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Login:
    user: str = ""
    password: SecretStr = field(default_factory=lambda: SecretStr(""))


class Source:
    """Opens connections that can only read. Everything here blocks: it is called in threads."""

    def __init__(self, config: SqlSettings, login: Login, seconds: float) -> None:
        self.config, self.seconds = config, seconds
        self._login = login

    @contextmanager
    def open(self, address: str | None) -> Iterator[sqlalchemy.Connection]:
        """A connection in a read-only transaction to the vetted `address`; raises `ConnectorUnavailable`."""
        engine = self._engine(address)
        try:
            with engine.connect() as connection:
                yield connection
        except sqlalchemy.exc.OperationalError as error:
            if error.connection_invalidated or error.statement is None:
                raise ConnectorUnavailable(f"The database cannot be reached: {_first_line(error)}") from None
            raise
        finally:
            engine.dispose()

    def tables(self, connection: sqlalchemy.Connection) -> list[Table]:
        """Tables and views that may be read, by schema and name."""
        inspector = sqlalchemy.inspect(connection)
        schemas: list[str | None] = [None] if self.config.dialect == "sqlite" else list(self.config.schemas)
        found = [
            Table(schema, name)
            for schema in schemas
            for name in [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]
        ]
        wanted = {name.lower() for name in self.config.tables}
        return sorted(
            (table for table in found if not wanted or wanted & {table.name.lower(), str(table).lower()}), key=str
        )

    def confine(self, connection: sqlalchemy.Connection, tables: Collection[Table], named: Collection[str]) -> None:
        """The last lock before a query of a model: what the database itself refuses from now on.

        `named` are the query's own names (WITH), which SQLite asks for like tables.
        """
        raw = connection.connection.driver_connection
        if isinstance(raw, sqlite3.Connection):
            real = {row[0].lower() for row in raw.execute("SELECT name FROM sqlite_master")}
            own = {name for name in named if name not in real and not name.startswith(("sqlite_", "pragma_"))}
            _confine_sqlite(raw, {table.name.lower() for table in tables} | own, self.seconds)

    def _engine(self, address: str | None) -> sqlalchemy.Engine:
        if self.config.dialect == "sqlite":
            return _sqlite_engine(sqlite_file(self.config.database))
        config = self.config
        url = URL.create(
            "postgresql+psycopg" if config.dialect == "postgresql" else config.dialect,
            username=self._login.user or None,
            password=self._login.password.get_secret_value() or None,
            host=config.host if config.dialect == "postgresql" else address,
            port=config.port,
            database=config.database,
        )
        if config.dialect != "postgresql":
            return sqlalchemy.create_engine(url, poolclass=NullPool)
        return _postgresql_engine(url, address, config, self.seconds)


def _postgresql_engine(url: URL, address: str | None, config: SqlSettings, seconds: float) -> sqlalchemy.Engine:
    milliseconds = int(seconds * 1_000)
    options = {
        "default_transaction_read_only": "on",
        "statement_timeout": milliseconds,
        "lock_timeout": 2_000,
        "idle_in_transaction_session_timeout": milliseconds + 10_000,
        "search_path": "pg_catalog",
        "row_security": "on",
        "standard_conforming_strings": "on",  # strings end where the guard saw them end
    }
    arguments: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "agentapp",
        "sslmode": config.tls,
        "passfile": os.devnull,  # nothing of the worker's own account goes to somebody's host
        "options": " ".join(f"-c {name}={value}" for name, value in options.items()),
    }
    if address is not None:
        arguments["hostaddr"] = address
    if config.tls == "verify-full":
        arguments["sslrootcert"] = "system"
    engine = sqlalchemy.create_engine(url, poolclass=NullPool, connect_args=arguments)

    @event.listens_for(engine, "connect")
    def only_read(raw: Any, _: object) -> None:
        with raw.cursor() as cursor:
            if config.role:
                cursor.execute("SELECT pg_catalog.set_config('role', %s, false)", [config.role])
            cursor.execute(_POWERS)
            powers = cursor.fetchone()[0]
        raw.commit()
        raw.read_only = True
        if powers:
            raise ConnectorError(
                f"This role may do more than read tables ({powers}). Connect with a role that has only SELECT."
            )

    return engine


# Rights that a read-only transaction does not take away.
_POWERS = """
SELECT string_agg(name, ', ') FROM (
    SELECT 'superuser' AS name FROM pg_catalog.pg_roles WHERE rolname IN (current_user, session_user) AND rolsuper
    UNION SELECT rolname::text FROM pg_catalog.pg_roles
    WHERE rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')
    AND pg_catalog.pg_has_role(session_user, oid, 'MEMBER')
) AS found
"""


def _sqlite_engine(path: Path) -> sqlalchemy.Engine:
    if not path.is_file():
        raise ConnectorError(f"There is no file {path.name} in the folder for databases.")

    def connect() -> sqlite3.Connection:
        raw = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
        raw.executescript("PRAGMA query_only=ON; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;")
        raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        raw.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        raw.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200)
        return raw

    return sqlalchemy.create_engine("sqlite://", creator=connect, poolclass=NullPool)


def _confine_sqlite(raw: sqlite3.Connection, tables: Collection[str], seconds: float) -> None:
    functions = allowed_functions("sqlite")
    deadline = time.monotonic() + seconds

    def authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
        allowed = (
            action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_TRANSACTION)
            or (action == sqlite3.SQLITE_READ and (first or "").lower() in (*tables, "json_each", "json_tree", ""))
            or (action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in functions)
        )
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    raw.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')").fetchall()  # made now, which is not allowed later
    raw.set_authorizer(authorize)
    raw.set_progress_handler(lambda: time.monotonic() > deadline, 2_000)


def _first_line(error: sqlalchemy.exc.DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0][:300] if str(error.orig).strip() else type(error.orig).__name__
