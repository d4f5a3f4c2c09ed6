"""The work of the tools: which tables there are, what one looks like, what a query gives. Blocks: called in threads."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import sqlalchemy
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tools_admin.connectors.base import ToolError
from tools_admin.connectors.sql.guard import Table, check_query
from tools_admin.connectors.sql.source import MAX_VALUE_BYTES, Source

MAX_CELL_CHARS = 2_000
MAX_DESCRIBED = 500


def list_tables(source: Source, connection: sqlalchemy.Connection) -> str:
    tables = source.tables(connection)
    if not tables:
        return "There are no tables here."
    inspector = sqlalchemy.inspect(connection)
    lines = [f"{table}{_comment(inspector, table)}" for table in tables[:MAX_DESCRIBED]]
    if len(tables) > MAX_DESCRIBED:
        lines.append(f"(only the first {MAX_DESCRIBED} of {len(tables)} are shown)")
    return "\n".join(lines)


def describe_table(source: Source, connection: sqlalchemy.Connection, name: str) -> str:
    """Columns with types and keys, one a line."""
    tables = source.tables(connection)
    found = [table for table in tables if name.strip().lower() in (table.name.lower(), str(table).lower())]
    if not found:
        raise ToolError(f"There is no table {name[:80]!r}. The tables are: {', '.join(str(t) for t in tables[:60])}")
    table = found[0]
    inspector = sqlalchemy.inspect(connection)
    key = inspector.get_pk_constraint(table.name, table.schema)["constrained_columns"]
    targets = {
        column: f"{foreign['referred_table']}.{target}"
        for foreign in inspector.get_foreign_keys(table.name, table.schema)
        for column, target in zip(foreign["constrained_columns"], foreign["referred_columns"], strict=False)
    }
    lines = [f"{table}{_comment(inspector, table)}"]
    for column in inspector.get_columns(table.name, table.schema):
        name = column["name"]
        facts = [str(column["type"]), *(["primary key"] if name in key else [])]
        facts += [f"references {targets[name]}"] if name in targets else []
        facts += [] if column["nullable"] or name in key else ["not null"]
        comment = f"  -- {column['comment']}" if column.get("comment") else ""
        lines.append(f"  {name}: {', '.join(facts)}{comment}")
    return "\n".join(lines)


def query(source: Source, connection: sqlalchemy.Connection, sql: str, parameters: Mapping[str, Any]) -> str:
    """A Markdown table of the rows; raises `ToolError` with the database's own words when it refuses."""
    tables = source.tables(connection)
    checked = check_query(sql, source.config.parsed_as, tables)
    missing = [name for name in checked.parameters if name not in parameters]
    if missing:
        raise ToolError(f"The query has parameters without a value: {', '.join(missing)}. Pass them in `parameters`.")
    values = {name: parameters[name] for name in checked.parameters}
    text = sqlalchemy.text(_bounded(checked.sql) if source.config.dialect == "postgresql" else checked.sql)
    source.confine(connection, tables, checked.named)
    try:
        streamed = connection.execution_options(stream_results=True, max_row_buffer=50)
        with closing(streamed.execute(text, values)) as result:
            return as_table(list(result.keys()), result, source.config.max_rows, source.config.max_bytes)
    except (SQLAlchemyError, ValueError, OverflowError) as error:
        raise ToolError(explain(error, source.seconds)) from None


_TOO_LARGE = "this row is too large"


def _bounded(sql: str) -> str:
    """PostgreSQL would send a value of a gigabyte; a larger row is an error before it leaves the server.

    The error comes from the cast of a text that is no number, which happens only for such a row.
    """
    row = f"CASE WHEN pg_catalog.pg_column_size(q) > {MAX_VALUE_BYTES} THEN '{_TOO_LARGE}' ELSE '0' END"
    return f"SELECT * FROM ({sql}) AS q WHERE CAST({row} AS pg_catalog.int4) = 0"  # noqa: S608 (checked, and no values)


def as_table(columns: Sequence[str], rows: Any, max_rows: int, max_bytes: int) -> str:
    """Rows as a Markdown table, cut where the limits are, with a line that says so."""
    lines = [_line(columns), "|" + " --- |" * len(columns)]
    size = sum(len(line.encode()) for line in lines)
    cut = ""
    for number, row in enumerate(rows):
        line = _line([as_cell(value) for value in row])
        size += len(line.encode()) + 1
        if number == max_rows or size > max_bytes:
            cut = f"\n\n(cut: only the first {number} rows are shown; ask for less, or for sums)"
            break
        lines.append(line)
    if len(lines) == 2 and not cut:
        return "No rows."
    return "\n".join(lines) + cut


def as_cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes | memoryview):
        return f"({len(bytes(value))} bytes)"
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, decimal.Decimal):
        return f"{value:f}" if value.is_finite() else str(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False, default=str)
    text = str(value)
    return text if len(text) <= MAX_CELL_CHARS else f"{text[:MAX_CELL_CHARS]}… ({len(text):,} characters)"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def explain(error: Exception, seconds: float) -> str:
    """The database's words without ours around them: no SQL, no addresses."""
    said = str(error.orig if isinstance(error, DBAPIError) else error).strip() or type(error).__name__
    if _TOO_LARGE in said or "string or blob too big" in said:
        return f"A row is larger than {MAX_VALUE_BYTES:,} bytes. Select fewer columns, or the beginning of long texts."
    if "statement timeout" in said or said == "interrupted":
        return f"The query took longer than {seconds:g} s. Ask for less, or filter earlier."
    if "lock timeout" in said:
        return "Somebody is changing this table at the moment. Try again later."
    first, *others = said.splitlines()
    hints = [line for line in others if line.startswith(("HINT", "DETAIL"))]
    return f"The database says: {' '.join([first, *hints])[:500]}"


def _comment(inspector: sqlalchemy.Inspector, table: Table) -> str:
    try:
        comment = inspector.get_table_comment(table.name, table.schema)["text"]
    except (NotImplementedError, SQLAlchemyError):
        comment = None
    return f": {' '.join(comment.split())[:300]}" if comment else ""
