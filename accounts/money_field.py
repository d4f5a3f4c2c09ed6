"""Amounts of money in forms: people write units of the currency, rows hold micro-units."""

from decimal import Decimal
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminDecimalFieldWidget

from accounts.money import MICRO

MOST = 1_000_000_000


class MoneyField(forms.DecimalField):
    widget = UnfoldAdminDecimalFieldWidget

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=MOST, decimal_places=6, **options)

    def prepare_value(self, value: Any) -> Any:
        return as_units(value) if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:
        amount = super().clean(value)
        return None if amount is None else int(amount * MICRO)


def as_units(micro: int) -> str:
    """`2.5` for 2,500,000, as a form shows it."""
    units = Decimal(micro) / MICRO
    return f"{units.normalize():f}" if units else "0"
