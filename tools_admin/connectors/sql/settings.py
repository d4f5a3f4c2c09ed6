"""What an administrator says about a database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Name = Annotated[str, StringConstraints(min_length=1, max_length=63, strip_whitespace=True)]

# sqlglot's names of SQLAlchemy's dialects, where they differ
_PARSED_AS = {"postgresql": "postgres", "mssql": "tsql"}


class SqlSettings(BaseModel):
    """User and password are the connector's sign-in, and go to `base_url` only."""

    model_config = ConfigDict(extra="forbid")

    dialect: str = "postgresql"  # or sqlite, or a SQLAlchemy dialect that the operator allows
    host: str = Field("", max_length=253)
    port: int = Field(5432, ge=1, le=65_535)
    database: str = Field(min_length=1, max_length=200)  # its name; of SQLite the file's
    role: str = Field("", max_length=63)  # taken on after signing in
    tls: Literal["prefer", "require", "verify-full"] = "prefer"
    schemas: list[Name] = Field(default=["public"], max_length=20)
    tables: list[Name] = Field(default=[], max_length=500)  # only these; empty means all
    max_rows: int = Field(200, ge=1, le=5_000)
    max_bytes: int = Field(200_000, ge=1_000, le=5_000_000)  # of the rows as text
    base_url: str = ""  # follows from the others

    @model_validator(mode="after")
    def _fits(self) -> SqlSettings:
        if self.dialect not in ("postgresql", "sqlite", *settings.SQL_DIALECTS):
            raise ValueError(f"{self.dialect} is not allowed; the operator allows more dialects by SQL_DIALECTS")
        if self.dialect == "sqlite":
            sqlite_file(self.database)
            self.base_url = ""
            return self
        if not self.host:
            raise ValueError("name the database's host")
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.base_url = f"{self.dialect.partition('+')[0]}://{host}:{self.port}"
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
