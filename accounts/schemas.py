"""What the API tells of people."""

import re
from datetime import date, datetime
from typing import Annotated, Generic, TypeVar

from ninja import Field, Schema
from pydantic import BaseModel, BeforeValidator, ConfigDict

from accounts.examples import USER, example, shown

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


class RowOut(BaseModel):
    """What is read straight from a row's attributes. Ninja's `Schema` looks each one up in Python, which takes most of
    the time of a long page; it is for those that need its resolvers."""

    model_config = ConfigDict(from_attributes=True)


class PageOut(Schema, Generic[T]):
    items: list[T] = Field(description="In the order of the list, at most `limit`.")
    next: str | None = Field(description="The `cursor` of the next page; null on the last one.", examples=[None])


class BudgetOut(Schema):
    model_config = example(
        owner="ada",
        of="user",
        unit="cost",
        period="month",
        limit=20_000_000,
        used=1_250_000,
        left=18_750_000,
        low=False,
        resets_at="2026-02-01T00:00:00Z",
    )

    owner: str = Field(description="The name of the person, group or key that it belongs to.")
    of: str = Field(description="user, group or api_key")
    unit: str = Field(description="cost: micro-units of the currency; tokens")
    period: str = Field(description="day, week or month")
    limit: int = Field(description="What may be used in a period.")
    used: int = Field(description="What runs have set aside counts as used.")
    left: int = Field(description="What is left of `limit`.")
    low: bool = Field(description="So much is used that people are warned.")
    resets_at: datetime = Field(description="When the next period begins.")


class MeOut(Schema):
    model_config = example(
        id=USER,
        username="ada",
        name="Ada Lovelace",
        groups=["Analysts"],
        currency="USD",
        budgets=shown(BudgetOut),
    )

    id: int = Field(description="As `user` in runs.")
    username: str = Field(description="What they sign in with.")
    name: str = Field(description="The full name, perhaps empty.")
    groups: list[str] = Field(description="The names of their groups, which open agents, tools and models.")
    currency: str = Field(description="ISO 4217; all costs are in millionths of it.")
    budgets: list[BudgetOut] = Field(description="Of all that pay for the caller's runs, except their agents.")
