"""Asking a connector's system for an administrator: whether it works, and what it offers."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentapp.database import in_thread
from tools_admin import breaker
from tools_admin.calls import Opened, opened
from tools_admin.connector_models import Connector
from tools_admin.connectors.base import ConnectorError, SignInWanted, ToolError, ToolSpec


@dataclass(frozen=True, slots=True)
class Found:
    """What the system said, without secrets, or the exact error."""

    good: bool
    text: str
    specs: Sequence[ToolSpec] = ()
    wants_sign_in: bool = False


def _failed(made: Opened, error: Exception) -> Found:
    return Found(False, made.redacted(str(error)), wants_sign_in=isinstance(error, SignInWanted))


async def check(row: Connector, user_id: int | None) -> Found:
    """A working check also ends the breaker's pause."""
    made = await in_thread(opened, row, user_id)
    try:
        text = await made.connector().check()
    except (ConnectorError, ToolError) as error:
        return _failed(made, error)
    await in_thread(breaker.recovered, row.pk)
    return Found(True, made.redacted(text))


async def discover(row: Connector, user_id: int | None) -> Found:
    made = await in_thread(opened, row, user_id)
    try:
        return Found(True, "", await made.connector().discover())
    except (ConnectorError, ToolError) as error:
        return _failed(made, error)
