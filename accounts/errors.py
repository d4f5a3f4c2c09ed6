"""What can go wrong with people and their keys.

AccountsError
├── SetupLinkInvalid
└── UserUnknown
"""


class AccountsError(Exception):
    """The message is a sentence for people."""


class SetupLinkInvalid(AccountsError):
    """The one-time link is used, superseded or unknown, or an administrator exists already."""


class UserUnknown(AccountsError):
    """No active account has that user name."""
