from __future__ import annotations

import asyncio
import base64
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
import sqlalchemy
from pydantic import SecretStr, ValidationError

from agentapp.addresses import AddressRefused, vetted
from agentapp.engine import EffectClass, ToolResult
from tools_admin.connectors.base import ConnectorError, Setup, ToolError, ToolSpec
from tools_admin.connectors.sql import reading
from tools_admin.connectors.sql.settings import SqlSettings
from tools_admin.connectors.sql.source import CONNECT_SECONDS, Login, Source

T = TypeVar("T")


def _object(required: Sequence[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


_QUERY_SCHEMA = _object(
    ["sql"],
    sql={"type": "string", "description": "One SELECT statement. Write values as :name and pass them in parameters."},
    parameters={
        "type": "object",
        "description": "The values of the :names in the statement.",
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    },
)


class SqlConnector:
    """A database as three tools. Each call has a connection of its own, in a thread; stopping it stops the server."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        try:
            self._config = SqlSettings.model_validate(dict(setup.settings))
        except ValidationError as error:
            raise ConnectorError(f"The settings are wrong: {error}") from None

    async def check(self) -> str:
        tables = await self._read(lambda source, connection: source.tables(connection))
        if not tables:
            raise ConnectorError("The connection works, but there is no table that may be read.")
        return f"Connected; {len(tables)} tables can be read."

    async def discover(self) -> Sequence[ToolSpec]:
        config = self._config
        name = config.dialect.partition("+")[0]
        limit = config.max_bytes + 1_000
        common: dict[str, Any] = {"effect_class": EffectClass.READ, "timeout": self._setup.timeout + CONNECT_SECONDS}
        return [
            ToolSpec("list_tables", "List the tables of the database.", _object([]), **common),
            ToolSpec(
                "describe_table",
                "Show a table's columns, their types, and what they refer to. Use it before you query.",
                _object(["table"], table={"type": "string", "description": "Name of the table."}),
                **common,
            ),
            ToolSpec(
                "query",
                f"Run one SELECT ({name}) and get its rows, at most {config.max_rows}.",
                _QUERY_SCHEMA,
                max_result_chars=limit,
                **common,
            ),
        ]

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolResult:
        name = spec.key or spec.name
        if name == "list_tables":
            return ToolResult(await self._read(reading.list_tables))
        if name == "describe_table":
            return ToolResult(await self._read(reading.describe_table, arguments["table"]))
        if name == "query":
            sql, values = arguments["sql"], arguments.get("parameters") or {}
            self._setup.note(sql)
            return ToolResult(await self._read(reading.query, sql, values), content_type="text/markdown")
        raise ToolError(f"There is no tool {name!r}; there are list_tables, describe_table and query.")

    async def _read(self, work: Callable[..., T], *arguments: Any) -> T:
        """`work(source, connection, *arguments)` in a thread."""
        source = Source(self._config, await self._login(), self._setup.timeout)
        address = await self._address()
        handle = _Handle()

        def body() -> T:
            with source.open(address) as connection:
                handle.hold(connection)
                return work(source, connection, *arguments)

        try:
            return await _in_thread(body, handle.cancel)
        except sqlalchemy.exc.DBAPIError as error:
            raise ConnectorError(reading.explain(error, source.seconds)) from None

    async def _login(self) -> Login:
        """User and password of the connector's sign-in, which has the form of HTTP's."""
        if not self._config.base_url:
            return Login()
        signed = await self._setup.authorize(self._config.base_url, None)
        kind, _, encoded = signed.headers.get("Authorization", "").partition(" ")
        if not kind:
            return Login()
        if kind != "Basic":
            raise ConnectorError("A database signs in with user name and password: change the connector's sign-in.")
        user, _, password = base64.b64decode(encoded).decode().partition(":")
        return Login(user, SecretStr(password))

    async def _address(self) -> str | None:
        """Where the connection goes: the first of the host's addresses, all of which were checked."""
        config = self._config
        if config.dialect == "sqlite":
            return None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return (await vetted(config.host, config.port, self._setup.allowed_hosts))[0]
        except AddressRefused as error:
            raise ConnectorError(str(error)) from None
        except TimeoutError:
            raise ConnectorError(f"{config.host} was not found in time.") from None
        except (OSError, UnicodeError):
            raise ConnectorError(f"There is no host named {config.host}.") from None


class _Handle:
    """The connection of a call that is going on, for whoever stops it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._raw: Any = None
        self._cancelled = False

    def hold(self, connection: sqlalchemy.Connection) -> None:
        with self._lock:
            self._raw = connection.connection.driver_connection
            if self._cancelled:
                raise ConnectorError("The call was stopped.")

    def cancel(self) -> None:
        """Stops the statement in the server. May block for a moment: called in a thread."""
        with self._lock:
            self._cancelled = True
            raw = self._raw
        if isinstance(raw, sqlite3.Connection):
            raw.interrupt()
        elif isinstance(raw, psycopg.Connection):
            raw.cancel_safe(timeout=5)
        elif raw is not None:
            raw.close()


async def _in_thread(body: Callable[[], T], cancel: Callable[[], None]) -> T:
    """Runs `body` in a thread; when the task is cancelled, so is the statement, and the thread comes to its end."""
    running = asyncio.ensure_future(asyncio.to_thread(body))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        running.add_done_callback(lambda done: done.cancelled() or done.exception())
        threading.Thread(target=_quietly, args=(cancel,), daemon=True).start()
        raise


def _quietly(cancel: Callable[[], None]) -> None:
    with contextlib.suppress(psycopg.Error, sqlite3.Error):  # it was over already
        cancel()
