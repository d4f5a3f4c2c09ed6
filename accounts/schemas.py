"""What the API tells of people."""

import re
from datetime import date, datetime
from typing import Annotated, Generic, TypeVar

from ninja import Field, Schema
from pydantic import BeforeValidator

T = TypeVar("T")
Id = Annotated[int, Field(ge=1, le=2**63 - 1)]


def _written(value: object) -> object:
    """Pydantic takes any number for seconds since 1970, which the document does not say."""
    if not re.match(r"\d{4}-\d\d-\d\d", str(value)):
        raise ValueError("begin with a date like 2026-11-30")
    return value


def _number(value: object) -> object:
    """Pydantic takes texts and truth for numbers as well, which is right in an address only."""
    if isinstance(value, str | bool):
        raise ValueError("must be a number")
    return value


# In bodies.
Number = BeforeValidator(_number)
BodyId = Annotated[Id, Number]
Day = Annotated[date, BeforeValidator(_written)]
Moment = Annotated[datetime, BeforeValidator(_written)]


class PageOut(Schema, Generic[T]):
    items: list[T]
    next: str | None = Field(description="The `cursor` of the next page; null on the last one.")


class BudgetOut(Schema):
    owner: str
    of: str = Field(description="user, group or api_key")
    unit: str = Field(description="cost: micro-units of the currency; tokens")
    period: str = Field(description="day, week or month")
    limit: int
    used: int = Field(description="What runs have set aside counts as used.")
    left: int
    low: bool = Field(description="So much is used that people are warned.")
    resets_at: datetime


class MeOut(Schema):
    id: int
    username: str
    name: str
    groups: list[str]
    currency: str
    budgets: list[BudgetOut] = Field(description="Of all that pay for the caller's runs, except their agents.")
