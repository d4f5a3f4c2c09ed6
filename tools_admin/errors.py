"""What can go wrong with the configuration.

ToolsAdminError
└── NoModel
    └── NothingFits
"""


class ToolsAdminError(Exception):
    """The message is a sentence for people."""


class NoModel(ToolsAdminError):
    """No enabled model of an enabled provider is there; the message says what to do. `reason` is that of a run which
    fails for it."""

    reason = "no_model"


class NothingFits(NoModel):
    """There are models, but none that can take what a program asks for."""

    reason = "nothing_fits"
