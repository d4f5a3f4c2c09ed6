"""A database connection of the worker's loop: for what happens with every call of every run, where the ORM would cost
more than the work itself."""

import logging
from typing import Any

import psycopg
from django.db import connections

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5


class LoopConnection:
    """Opened on first use, opened anew after it broke."""

    def __init__(self) -> None:
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def get(self) -> psycopg.AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            parameters = connections["default"].get_connection_params()
            keep = ("dbname", "user", "password", "host", "port", "connect_timeout")
            self._connection = await psycopg.AsyncConnection.connect(
                autocommit=True, **{key: parameters[key] for key in keep if parameters.get(key)}
            )
        return self._connection

    async def drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
