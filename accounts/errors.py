"""What can go wrong with people and their keys.

AccountsError
├── InvitationInvalid
├── MayNotHandOut
├── SetupLinkInvalid
├── TooOften
└── UserUnknown
"""

from django.utils.translation import ngettext


class AccountsError(Exception):
    """The message is a sentence for people."""


class InvitationInvalid(AccountsError):
    """The invitation is used, withdrawn, expired or unknown, or its sender may no longer invite."""


class MayNotHandOut(AccountsError):
    """The groups give rights that the giver does not have."""


class SetupLinkInvalid(AccountsError):
    """The one-time link is used, superseded or unknown, or an administrator exists already."""


class TooOften(AccountsError):
    """More in a short time than the rate limits allow; `retry_after` is in seconds."""

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
