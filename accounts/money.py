"""Amounts as people read them. Inside they are integers: micro-units of the one currency, or tokens."""

from django.conf import settings
from django.utils.formats import number_format
from django.utils.translation import gettext as _

MICRO = 1_000_000


def shown_money(micro: int) -> str:
    """`3.10 USD`, in the language's notation; less than a unit with as many digits as it takes to see it."""
    value = micro / MICRO
    digits = 2 if micro == 0 or abs(value) >= 0.1 else 4 if abs(value) >= 0.001 else 6
    return f"{number_format(round(value, digits), digits, force_grouping=True)} {settings.CURRENCY}"


def shown_tokens(count: int) -> str:
    return _("%(count)s tokens") % {"count": number_format(count, force_grouping=True)}
