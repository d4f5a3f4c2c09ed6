"""One database: how it is reached, and by which of its own means it is kept from changing anything."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import sqlalchemy
from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, model_validator
from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from tools_admin.connectors.base import ConnectorError
from tools_admin.connectors.sql.functions import allowed_functions
from tools_admin.connectors.sql.guard import Table

Name = Annotated[str, StringConstraints(min_length=1, max_length=63, strip_whitespace=True)]

CONNECT_SECONDS = 10
MAX_VALUE_BYTES = 1_000_000

# sqlglot's names of SQLAlchemy's dialects, where they differ
_PARSED_AS = {"postgresql": "postgres", "mssql": "tsql"}


class SqlSettings(BaseModel):
    """What an administrator says about a database. The password is the connector's credential."""

    model_config = ConfigDict(extra="forbid")

    dialect: str = Field("postgresql", description="postgresql, sqlite, or a SQLAlchemy dialect from SQL_DIALECTS")
    host: str = Field("", max_length=253, description="Host name; empty for SQLite")
    port: int = Field(5432, ge=1, le=65_535)
    database: str = Field(min_length=1, max_length=200, description="Name of the database, or of the SQLite file")
    user: str = Field("", max_length=63)
    role: str = Field("", max_length=63, description="A role to take on after signing in; PostgreSQL only")
    tls: Literal["prefer", "require", "verify-full"] = "prefer"
    schemas: list[Name] = Field(default=["public"], max_length=20)
    tables: list[Name] = Field(default=[], max_length=500, description="Only these tables; empty means all")
    max_rows: int = Field(200, ge=1, le=5_000)
    max_bytes: int = Field(200_000, ge=1_000, le=5_000_000, description="Of the rows as text")
    seconds: float = Field(20.0, ge=0.1, le=600, description="Longest query")

    @model_validator(mode="after")
    def _fits(self) -> SqlSettings:
        if self.dialect not in ("postgresql", "sqlite", *settings.SQL_DIALECTS):
            raise ValueError(f"{self.dialect} is not allowed; the operator allows more dialects by SQL_DIALECTS")
        if self.dialect == "sqlite":
            sqlite_file(self.database)
        elif not self.host:
            raise ValueError("name the database's host")
        return self

    @property
    def parsed_as(self) -> str:
        name = self.dialect.partition("+")[0]
        return _PARSED_AS.get(name, name)


def sqlite_file(name: str) -> Path:
    """A file in the operator's folder for databases; raises ValueError for one that is elsewhere."""
    folder = Path(settings.SQL_FILES).resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder) or path == folder:
        raise ValueError("name a file in the folder for databases (SQL_FILES)")
    return path


class Source:
    """Opens connections that can only read. Everything here blocks: it is called in threads."""

    def __init__(self, config: SqlSettings, password: SecretStr) -> None:
        self.config = config
        self._password = password

    @contextmanager
    def open(self, address: str | None) -> Iterator[sqlalchemy.Connection]:
        """A connection in a read-only transaction to the vetted `address`; raises `ConnectorError`."""
        engine = self._engine(address)
        try:
            with engine.connect() as connection:
                yield connection
        except sqlalchemy.exc.OperationalError as error:
            if error.connection_invalidated or error.statement is None:
                raise ConnectorError(f"The database cannot be reached: {_first_line(error)}") from None
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
            _confine_sqlite(raw, {table.name.lower() for table in tables} | own, self.config.seconds)

    def _engine(self, address: str | None) -> sqlalchemy.Engine:
        if self.config.dialect == "sqlite":
            return _sqlite_engine(sqlite_file(self.config.database))
        config = self.config
        url = URL.create(
            "postgresql+psycopg" if config.dialect == "postgresql" else config.dialect,
            username=config.user or None,
            password=self._password.get_secret_value() or None,
            host=config.host if config.dialect == "postgresql" else address,
            port=config.port,
            database=config.database,
        )
        if config.dialect != "postgresql":
            return sqlalchemy.create_engine(url, poolclass=NullPool)
        return _postgresql_engine(url, address, config)


def _postgresql_engine(url: URL, address: str | None, config: SqlSettings) -> sqlalchemy.Engine:
    milliseconds = int(config.seconds * 1_000)
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
