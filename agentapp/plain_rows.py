"""Rows in plain SQL, for what happens in every run: there the ORM takes longer to put a statement together than
PostgreSQL to carry it out."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Model

from agentapp.database import prepared_cursor

M = TypeVar("M", bound=Model)


class Columns(Generic[M]):
    """All columns of a model's table, in their order. Signals are not sent."""

    def __init__(self, model: type[M]) -> None:
        self._model, self._meta = model, model._meta
        self._fields = self._meta.concrete_fields
        self._names = [field.attname for field in self._fields]
        self._decoders = [
            (place, decode, field)
            for place, field in enumerate(self._fields)
            if (decode := getattr(field, "from_db_value", None))
        ]

    def of(self, alias: str) -> str:
        """What to select, of a table of this name in a statement."""
        return ", ".join(f'{alias}."{field.column}"' for field in self._fields)

    def row(self, values: Iterator[Any]) -> M:
        """The row that begins here."""
        taken = list(islice(values, len(self._fields)))
        for place, decode, field in self._decoders:
            taken[place] = decode(taken[place], field.cached_col, connection)
        return self._model.from_db(connection.alias, self._names, taken)

    def insert(self, rows: Sequence[M]) -> None:
        """New rows, if any; keys that the database gives stay unknown."""
        if not rows:
            return
        fields = [field for field in self._fields if field is not self._meta.auto_field]
        values = [value for row in rows for value in _encoded(fields, row, new=True)]
        one = f"({', '.join(['%s'] * len(fields))})"
        names = ", ".join(f'"{field.column}"' for field in fields)
        _execute(f"INSERT INTO {self._meta.db_table} ({names}) VALUES {', '.join([one] * len(rows))}", values)  # noqa: S608
        for row in rows:
            row._state.adding, row._state.db = False, connection.alias

    def save(self, row: M) -> None:
        """A row that is there already, all of it."""
        fields = [field for field in self._fields if not field.primary_key]
        values = _encoded(fields, row, new=False)
        changed = ", ".join(f'"{field.column}" = %s' for field in fields)
        _execute(f"UPDATE {self._meta.db_table} SET {changed} WHERE {self._meta.pk.column} = %s", [*values, row.pk])  # noqa: S608


def _encoded(fields: Sequence[Any], row: Model, *, new: bool) -> list[Any]:
    there = connections[DEFAULT_DB_ALIAS]  # `connection` looks for it with every word
    return [field.get_db_prep_save(field.pre_save(row, new), there) for field in fields]


def _execute(statement: str, values: list[Any]) -> None:
    with prepared_cursor() as cursor:
        cursor.execute(statement, values)
