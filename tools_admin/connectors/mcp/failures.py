"""What the SDK and servers raise, in one line for people and models."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx2
from mcp.shared.exceptions import MCPError

from agentapp.outbound import OutboundError

MAX_CHARS = 600
_LINKS = re.compile(r"\s*(For further information visit\s*)?https?://\S+")


def explain_connecting(error: BaseException) -> str:
    """Why there is no connection."""
    leaves = list(_leaves(error))
    for leaf in leaves:
        if isinstance(leaf, OutboundError):
            return str(leaf)
        if isinstance(leaf, httpx2.HTTPStatusError):
            status = leaf.response.status_code
            if status in (401, 403):
                return f"The server refuses the sign-in (HTTP {status}). Set up or renew the credential."
            return f"The server answers with HTTP {status}. Is this the address of its MCP endpoint?"
    for leaf in leaves:
        if isinstance(leaf, MCPError):
            return f"The server says: {shortened(leaf.error.message)}"
    first = leaves[0] if leaves else error
    return f"The connection failed: {shortened(str(first)) or type(first).__name__}"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
        return
    yield error
    if error.__cause__ is not None:
        yield from _leaves(error.__cause__)


def shortened(text: str) -> str:
    """Long validation texts without their links, for a model to read."""
    text = " ".join(_LINKS.sub("", text).split())
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"
