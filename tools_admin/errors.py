"""What can go wrong with the configuration.

ToolsAdminError
└── NoModel
"""


class ToolsAdminError(Exception):
    """The message is a sentence for people."""


class NoModel(ToolsAdminError):
    """No enabled model of an enabled provider is there; the message says what to do."""
