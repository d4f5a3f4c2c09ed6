from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tools_admin.connectors.base import ToolError
from tools_admin.demo.dataset import TABLES, database_image, describe_tables

if TYPE_CHECKING:
    import sqlite3

MAX_ROWS = 50
MAX_CELL_CHARS = 300
MAX_RESULT_CHARS = 6_000
MAX_SECONDS = 1.0

FUNCTIONS = """
    abs avg coalesce count date datetime group_concat ifnull iif instr julianday length like lower ltrim max min
    nullif printf replace round rtrim strftime substr substring sum time total trim typeof upper
    row_number rank dense_rank lag lead first_value last_value
"""


def query_demo_database(sql: str, *, seconds: float = MAX_SECONDS) -> str:
    """The rows of one SELECT as a text table; raises `ToolError`, with the names that help, for everything else.

    Every call opens a copy of the data in memory and throws it away, so that nothing is shared between calls.
    """
    import sqlite3

    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(database_image())
        _confine(connection, seconds)
        cursor = connection.execute(sql)
        if cursor.description is None:
            raise ToolError(f"Send one SELECT statement. Tables:\n{describe_tables()}")
        rows = cursor.fetchmany(MAX_ROWS + 1)
        return _as_table([column[0] for column in cursor.description], rows)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:  # ValueError: NUL or half a surrogate pair
        raise ToolError(_explain(error, sql)) from None
    finally:
        connection.close()


def _confine(connection: sqlite3.Connection, seconds: float) -> None:
    """Reading only, one known set of functions, bounded time and memory."""
    import sqlite3

    allowed = set(FUNCTIONS.split())

    def authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in allowed:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    deadline = time.monotonic() + seconds
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 5_000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 1_000)
    connection.set_authorizer(authorize)


def _explain(error: Exception, sql: str) -> str:
    """What went wrong and the names that help; short, because small models copy what they read."""
    message = str(error).rstrip(".")
    if message == "interrupted":
        return "The query took too long. Ask for less."
    if message.startswith("no such column: "):
        column = message.removeprefix("no such column: ").rpartition(".")[2]
        having = [table for table, columns in TABLES.items() if column in columns]
        named = [table for table in TABLES if re.search(rf"\b{table}\b", sql, re.IGNORECASE)]
        return f"{message}. {'It is in ' if having else ''}{describe_tables(having or named)}"
    if "authoriz" in message or "prohibited" in message:
        message = f"This is not allowed, only SELECT is ({message})"
    return f"{message[:300]}. The tables are {', '.join(TABLES)}."


def _as_table(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> str:
    if not rows:
        return "No rows."
    lines = [" | ".join(columns)]
    size = len(lines[0])
    for row in rows[:MAX_ROWS]:
        line = " | ".join(_as_cell(value) for value in row)
        size += len(line) + 1
        if size > MAX_RESULT_CHARS:
            break
        lines.append(line)
    shown = len(lines) - 1
    if shown < len(rows):
        lines.append(f"(only the first {shown} rows are shown: ask for less)")
    return "\n".join(lines)


def _as_cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.10g}"  # sums of prices, without the dust of binary fractions
    text = str(value).replace("\n", " ")
    return text if len(text) <= MAX_CELL_CHARS else text[: MAX_CELL_CHARS - 1] + "…"
