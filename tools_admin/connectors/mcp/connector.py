from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import mcp_types
from django.conf import settings
from mcp import Client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agentapp.engine import EffectClass, ToolResult
from agentapp.outbound import Refused, parse
from tools_admin.connectors.base import ConnectorError, ConnectorUnavailable, Setup, ToolError, ToolSpec
from tools_admin.connectors.mcp import catalogue
from tools_admin.connectors.mcp.failures import shortened
from tools_admin.connectors.mcp.http import http_transport
from tools_admin.connectors.mcp.link import Disconnected, Link
from tools_admin.connectors.mcp.links import links
from tools_admin.connectors.mcp.results import as_resource, as_tool_result
from tools_admin.connectors.mcp.settings import McpSettings
from tools_admin.connectors.mcp.stdio import StdioServer
from tools_admin.connectors.person import Question, asking

T = TypeVar("T")

# The tool's own time-out ends a call; the SDK's would not know about questions to a person.
CALL_SECONDS = 86_400.0
MAX_RESOURCES = 500


class McpConnector:
    """A server that speaks the Model Context Protocol, through a connection that calls share."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        try:
            self._settings = McpSettings.model_validate(dict(setup.settings))
            if self._settings.base_url:
                parse(self._settings.base_url)
        except (ValidationError, Refused) as error:
            raise ConnectorError(f"The settings are wrong: {error}") from None

    async def check(self) -> str:
        async def look(client: Client, link: Link) -> str:
            specs = await catalogue.specs_of(await self._catalogue(client, link), client)
            info = client.server_info
            name = f"{info.name[:100]} {info.version[:40]}" if info else "The server"
            return f"{name} answers (protocol {client.protocol_version}) and offers {len(specs)} tools."

        return await self._use(look)

    async def discover(self) -> Sequence[ToolSpec]:
        async def look(client: Client, link: Link) -> list[ToolSpec]:
            link.catalogue = None
            return await catalogue.specs_of(await self._catalogue(client, link), client)

        return await self._use(look)

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolResult:
        async def work(client: Client, link: Link) -> ToolResult:
            if spec.key == catalogue.LIST_RESOURCES:
                return await _list_resources(client)
            if spec.key == catalogue.READ_RESOURCE:
                return as_resource((await client.read_resource(arguments["uri"])).contents)
            self._check_unchanged(spec, await self._catalogue(client, link))
            try:
                result = await client.call_tool(spec.key, dict(arguments), read_timeout_seconds=CALL_SECONDS)
            except MCPError as error:
                if error.error.code != mcp_types.URL_ELICITATION_REQUIRED:
                    raise
                await _visit(error)
                result = await client.call_tool(spec.key, dict(arguments), read_timeout_seconds=CALL_SECONDS)
            return as_tool_result(result)

        return await self._use(work)

    async def _use(self, work: Callable[[Client, Link], Awaitable[T]]) -> T:
        link = await self._link()
        try:
            return await link.use(lambda client: work(client, link))
        except Disconnected as error:
            raise ConnectorUnavailable(str(error)) from None
        except MCPError as error:
            raise ToolError(f"The server says: {shortened(error.error.message)}") from None
        except (RuntimeError, ValidationError) as error:
            raise ToolError(f"The server's answer is not what it promised: {shortened(str(error))}") from None

    async def _link(self) -> Link:
        """People who sign in themselves have connections of their own; everybody else shares one."""
        setup, chosen = self._setup, self._settings
        if chosen.command:
            server = StdioServer(settings.MCP_COMMANDS[chosen.command])
            return links().get((setup.id, setup.version), lambda: Link(server.transport, lambda: server.last_words))
        signed = await setup.authorize(chosen.base_url, None)
        person = setup.user_id if signed.secrets else None
        key = (setup.id, setup.version, person)
        newest = [setup]
        link = links().get(key, lambda: Link(lambda: http_transport(chosen.base_url, newest), setups=newest))
        link.setups[:] = newest
        return link

    async def _catalogue(self, client: Client, link: Link) -> list[mcp_types.Tool]:
        if link.catalogue is None:
            link.catalogue = []  # a change that is announced while the list is read makes it None again
            tools = await catalogue.read_catalogue(client)
            if link.catalogue is not None:
                link.catalogue = tools
            return tools
        return link.catalogue

    def _check_unchanged(self, spec: ToolSpec, tools: Sequence[mcp_types.Tool]) -> None:
        """A tool that an administrator took for a reading one must not turn into a writing one behind their back."""
        now = next((tool for tool in tools if tool.name == spec.key), None)
        if now is None:
            raise ToolError(f"The server does not offer {spec.name} any more; an administrator reads its list anew.")
        before = spec.definition.get("effect", EffectClass.ONCE)
        if before == EffectClass.READ and catalogue.effect_of(now) != EffectClass.READ:
            raise ToolError(f"The server says now that {spec.name} changes things. An administrator decides about it.")


async def _list_resources(client: Client) -> ToolResult:
    lines: list[str] = []
    cursor = None
    for _ in range(catalogue.MAX_PAGES):
        page = await client.list_resources(cursor=cursor)
        for item in page.resources:
            described = f": {' '.join(item.description.split())[:200]}" if item.description else ""
            lines.append(f"{item.uri} ({item.name}){described}")
        cursor = page.next_cursor
        if not cursor or len(lines) > MAX_RESOURCES:
            break
    return ToolResult("\n".join(lines[:MAX_RESOURCES]) or "There are no resources.")


async def _visit(error: MCPError) -> None:
    """The server wants the person to visit a page first."""
    ask = asking.get()
    wanted = mcp_types.ElicitationRequiredErrorData.model_validate(error.error.data or {}).elicitations
    if ask is None or not wanted or not all(item.url.startswith("https://") for item in wanted):
        raise ToolError("The server wants a person to visit a page first, and nobody can be asked here.")
    for item in wanted[:3]:
        answer = await ask(Question(item.message[:2_000], url=item.url[:2_000]))
        if answer.action != "accept":
            raise ToolError("The user did not visit the page that the server asks for.")
