from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from agentapp.database import in_thread
from agentapp.engine import ToolResult
from agentapp.outbound import Refused, parse
from tools_admin.connectors.base import ConnectorError, Setup, ToolError, ToolSpec
from tools_admin.connectors.openapi import document
from tools_admin.connectors.openapi.encoding import body_of, headers_of, path_of, query_of
from tools_admin.connectors.openapi.operations import Reader
from tools_admin.connectors.request import Request, result_of, send
from tools_admin.models import Document

ACCEPT = "application/json, text/*;q=0.5, */*;q=0.1"


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    base_url: str
    source: str = ""


class OpenApiConnector:
    """A web service that an OpenAPI document describes. A call needs the tool's definition alone, not the document."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        try:
            self._base = str(parse(Settings.model_validate(setup.settings).base_url)).rstrip("/")
        except (ValidationError, Refused) as error:
            raise ConnectorError(f"The settings are wrong: {error}") from None

    async def check(self) -> str:
        found = await self.discover()
        response = await send(self._setup, Request("GET", f"{self._base}/", security=[]))
        return f"The document has {len(found)} operations; the server answers: HTTP {response.status_code}."

    async def discover(self) -> Sequence[ToolSpec]:
        return await in_thread(self._operations)

    def _operations(self) -> list[ToolSpec]:
        stored = Document.objects.filter(connector_id=self._setup.id).first()
        if stored is None:
            raise ConnectorError("There is no document yet; add one to the connector.")
        return list(Reader(document.read(stored.content)).operations())

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            return result_of(await send(self._setup, self.request(spec.definition, arguments)))
        except Refused as error:
            raise ToolError(str(error)) from None

    def request(self, definition: Mapping[str, Any], arguments: Mapping[str, Any]) -> Request:
        """What a call sends, before it is signed in; raises ToolError and Refused."""
        if "method" not in definition or "path" not in definition:
            raise ToolError("This operation is not defined any more; an administrator chooses it anew.")
        parameters = definition.get("parameters", [])
        headers, content = {"Accept": ACCEPT, **headers_of(parameters, arguments)}, None
        if body := definition.get("body"):
            encoded = body_of(body, arguments)
            if encoded is not None:
                content, headers["Content-Type"] = encoded
        base = str(definition.get("server") or self._base)
        return Request(
            definition["method"],
            base + path_of(definition["path"], parameters, arguments),
            query_of(parameters, arguments),
            headers,
            content,
            definition.get("security"),
        )
