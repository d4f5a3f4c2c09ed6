"""What can go wrong with people and their keys.

AccountsError
├── AddressRefused
├── InvitationInvalid
├── KeyReused
├── MayNotHandOut
├── ScopeMissing
├── SetupLinkInvalid
├── StillAtWork
├── TooOften
└── UserUnknown
"""

from collections.abc import Iterable

from django.utils.translation import gettext as _
from django.utils.translation import ngettext


class AccountsError(Exception):
    """The message is a sentence for people; `code` is stable where programs get it."""

    code, status = "forbidden", 403


class AddressRefused(AccountsError):
    """The key is good, but not from this address."""

    code = "address_refused"

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return _("This key may not be used from %(address)s.") % {"address": self.address or "?"}


class InvitationInvalid(AccountsError):
    """The invitation is used, withdrawn, expired or unknown, or its sender may no longer invite."""


class KeyReused(AccountsError):
    """An `Idempotency-Key` was sent with another request before."""

    code, status = "idempotency_key_reused", 409

    def __str__(self) -> str:
        return _("This Idempotency-Key was sent with another request already. Use a new one for a new request.")


class MayNotHandOut(AccountsError):
    """The groups give rights that the giver does not have."""


class ScopeMissing(AccountsError):
    """The key has none of the scopes that would do."""

    code = "insufficient_scope"

    def __init__(self, scopes: Iterable[str]) -> None:
        self.scopes = list(scopes)
        super().__init__(self.scopes)

    def __str__(self) -> str:
        return _("This key lacks the scope for that. Use one with: %(scopes)s.") % {"scopes": ", ".join(self.scopes)}


class SetupLinkInvalid(AccountsError):
    """The one-time link is used, superseded or unknown, or an administrator exists already."""


class StillAtWork(AccountsError):
    """The request with this `Idempotency-Key` is being worked on."""

    code, status = "idempotency_in_progress", 409

    def __str__(self) -> str:
        return _("The first request with this Idempotency-Key is still being worked on. Try again in a moment.")


class TooOften(AccountsError):
    """More in a short time than the rate limits allow; `retry_after` is in seconds."""

    code, status = "rate_limited", 429

    def __init__(self, retry_after: int) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return ngettext(
            "That was too much in a short time. Try again in %(seconds)d second.",
            "That was too much in a short time. Try again in %(seconds)d seconds.",
            self.retry_after,
        ) % {"seconds": self.retry_after}


class UserUnknown(AccountsError):
    """No active account has that user name."""
