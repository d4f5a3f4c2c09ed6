"""What can go wrong with people and their keys.

AccountsError
├── InvitationInvalid
├── MayNotHandOut
├── SetupLinkInvalid
└── UserUnknown
"""


class AccountsError(Exception):
    """The message is a sentence for people."""


class InvitationInvalid(AccountsError):
    """The invitation is used, withdrawn, expired or unknown, or its sender may no longer invite."""


class MayNotHandOut(AccountsError):
    """The groups give rights that the giver does not have."""


class SetupLinkInvalid(AccountsError):
    """The one-time link is used, superseded or unknown, or an administrator exists already."""


class UserUnknown(AccountsError):
    """No active account has that user name."""
