"""A database connection of the worker's loop: for what happens with every call of every run, where the ORM would cost
more than the work itself."""

import logging
from typing import Any

import psycopg
from django.db import connections

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
BY_KEY_ONLY = " ".join(
    f"-c {setting}"
    for setting in (
        "enable_seqscan=off",
        "enable_hashjoin=off",
        "enable_mergejoin=off",
        "plan_cache_mode=force_generic_plan",
    )
)


class LoopConnection:
    """Opened on first use, opened anew after it broke.

    `by_key_only`: its statements find each row by its key. They are planned once, and never with a scan of a table,
    which the planner likes better as long as it thinks that there are few rows.
    """

    def __init__(self, *, by_key_only: bool = False) -> None:
        self._options = BY_KEY_ONLY if by_key_only else ""
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def get(self) -> psycopg.AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            parameters = connections["default"].get_connection_params()
            keep = ("dbname", "user", "password", "host", "port", "connect_timeout")
            self._connection = await psycopg.AsyncConnection.connect(
                autocommit=True,
                options=f"{parameters.get('options') or ''} {self._options}".strip(),
                **{key: parameters[key] for key in keep if parameters.get(key)},
            )
        return self._connection

    async def drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
