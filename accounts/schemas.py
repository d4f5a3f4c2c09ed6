"""What the API tells of people."""

from datetime import datetime
from typing import Annotated, Generic, TypeVar

from ninja import Field, Schema

T = TypeVar("T")
Id = Annotated[int, Field(ge=1, le=2**63 - 1)]


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
