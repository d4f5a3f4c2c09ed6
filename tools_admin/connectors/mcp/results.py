"""What a tool of a server gave, as text for the model and files for the person."""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Iterable
from typing import Any

import mcp_types

from agentapp.engine import Artifact, ToolResult
from tools_admin.connectors.base import ToolError
from tools_admin.connectors.mcp.failures import shortened

MAX_FILE_BYTES = 10_000_000
MAX_FILES = 20


class _Collected:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.files: list[Artifact] = []

    def file(self, encoded: str, content_type: str | None, name: str) -> None:
        """Binary content becomes a file, text in disguise becomes text."""
        kind = (content_type or "application/octet-stream").split(";")[0].strip().lower()[:100]
        try:
            data = base64.b64decode(encoded, validate=True)
        except ValueError:  # no base64, or letters that it does not have
            self.texts.append(f"[{name}: broken data]")
            return
        if kind.startswith("text/") or kind == "application/json":
            self.texts.append(data.decode(errors="replace"))
        elif len(data) > MAX_FILE_BYTES or len(self.files) == MAX_FILES:
            self.texts.append(f"[{name}: {kind}, {len(data):,} bytes, left out because there is too much]")
        else:
            filename = f"{name}-{len(self.files) + 1}{mimetypes.guess_extension(kind) or '.bin'}"
            self.files.append(Artifact(filename, kind, data))
            self.texts.append(f"[{filename}: {kind}, shown to the user]")

    def add(self, block: Any) -> None:
        if isinstance(block, mcp_types.TextContent):
            self.texts.append(block.text)
        elif isinstance(block, mcp_types.ImageContent):
            self.file(block.data, block.mime_type, "image")
        elif isinstance(block, mcp_types.AudioContent):
            self.file(block.data, block.mime_type, "audio")
        elif isinstance(block, mcp_types.EmbeddedResource):
            self.resource(block.resource)
        elif isinstance(block, mcp_types.ResourceLink):
            described = f": {block.description}" if block.description else ""
            self.texts.append(f"{block.name} <{block.uri}>{described}")
        else:
            self.texts.append(f"[content of an unknown kind: {type(block).__name__}]")

    def resource(self, resource: Any) -> None:
        if isinstance(resource, mcp_types.TextResourceContents):
            self.texts.append(f"<{resource.uri}>\n{resource.text}")
        else:
            self.file(resource.blob, resource.mime_type, "resource")


def as_tool_result(result: mcp_types.CallToolResult) -> ToolResult:
    """Raises `ToolError` when the server says that the call failed."""
    collected = _Collected()
    for block in result.content:
        collected.add(block)
    if result.is_error:
        raise ToolError(shortened("\n".join(collected.texts)) or "The tool failed without saying why.")
    if result.structured_content is not None and not _is_repeated(collected.texts, result.structured_content):
        collected.texts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return ToolResult("\n".join(collected.texts), artifacts=tuple(collected.files))


def as_resource(contents: Iterable[Any]) -> ToolResult:
    collected = _Collected()
    for content in contents:
        collected.resource(content)
    return ToolResult("\n".join(collected.texts), artifacts=tuple(collected.files))


def _is_repeated(texts: list[str], structured: Any) -> bool:
    """Most servers send structured content once more as text; the model gets one of them."""
    for text in texts:
        try:
            said = json.loads(text)
        except ValueError:
            said = text
        if said == structured or (isinstance(structured, dict) and structured == {"result": said}):
            return True
    return False
