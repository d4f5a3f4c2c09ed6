"""Which MCP server a connector is for."""

from __future__ import annotations

from django.conf import settings
from pydantic import BaseModel, ConfigDict, model_validator


class McpSettings(BaseModel):
    """A server at an address, or one of the commands that the operator allows (`MCP_COMMANDS`)."""

    model_config = ConfigDict(extra="forbid")

    base_url: str = ""
    command: str = ""

    @model_validator(mode="after")
    def _one_of_both(self) -> McpSettings:
        if bool(self.base_url) == bool(self.command):
            raise ValueError("name either an address or a command")
        if self.command and self.command not in settings.MCP_COMMANDS:
            raise ValueError(f"{self.command!r} is not among the commands that the operator allows (MCP_COMMANDS)")
        return self
