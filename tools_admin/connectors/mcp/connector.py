from __future__ import annotations

import contextlib
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import mcp_types
from django.conf import settings
from mcp import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agentapp.engine import ToolResult, sign_of_life
from agentapp.outbound import Refused, parse
from tools_admin.connectors.base import (
    ConnectorError,
    ConnectorUnavailable,
    Setup,
    SignInWanted,
    ToolChanged,
    ToolError,
    ToolSpec,
)
from tools_admin.connectors.mcp import catalogue
from tools_admin.connectors.mcp.failures import shortened
from tools_admin.connectors.mcp.http import Caller, http_transport
from tools_admin.connectors.mcp.link import Disconnected, Link
from tools_admin.connectors.mcp.links import links
from tools_admin.connectors.mcp.results import as_resource, as_tool_result
from tools_admin.connectors.mcp.settings import McpSettings
from tools_admin.connectors.mcp.stdio import StdioServer
from tools_admin.connectors.person import Progress, Question, asking, telling

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
            specs = await catalogue.specs_of(await link.tools(client, anew=True), client)
            info = client.server_info
            name = f"{info.name[:100]} {info.version[:40]}" if info else "The server"
            return f"{name} answers (protocol {client.protocol_version}) and offers {len(specs)} tools."

        return await self._use(look)

    async def discover(self) -> Sequence[ToolSpec]:
        async def look(client: Client, link: Link) -> list[ToolSpec]:
            return await catalogue.specs_of(await link.tools(client, anew=True), client)

        return await self._use(look)

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolResult:
        async def work(client: Client, link: Link) -> ToolResult:
            if spec.key == catalogue.LIST_RESOURCES:
                return await _list_resources(client)
            if spec.key == catalogue.READ_RESOURCE:
                return as_resource((await client.read_resource(arguments["uri"])).contents)
            self._check_unchanged(spec, await link.tools(client))
            heard = _hearer()

            async def ask() -> Any:
                return await client.call_tool(
                    spec.key, dict(arguments), read_timeout_seconds=CALL_SECONDS, progress_callback=heard
                )

            try:
                result = await ask()
            except MCPError as error:
                if error.error.code != mcp_types.URL_ELICITATION_REQUIRED:
                    raise
                await _visit(error)
                result = await ask()
            return as_tool_result(result)

        return await self._use(work)

    async def _use(self, work: Callable[[Client, Link], Awaitable[T]]) -> T:
        link = await self._link()
        try:
            return await link.use(lambda client: work(client, link))
        except (Disconnected, MCPError) as error:
            if link.caller and link.caller.refusal:
                raise self._refused(link.caller.refusal, link.caller.setup) from None
            if isinstance(error, Disconnected):
                raise ConnectorUnavailable(str(error)) from None
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
        caller = Caller(setup)
        link = links().get(key, lambda: Link(lambda: http_transport(chosen.base_url, caller), caller=caller))
        if link.caller is not None:
            link.caller.setup, link.caller.refusal = setup, 0
        return link

    def _refused(self, status: int, setup: Setup) -> Exception:
        if setup.signs_in:
            return ToolError(
                f"The server does not accept the sign-in (HTTP {status}). Where people have accounts of their own, "
                "the user connects again on the page “My connections”; else an administrator renews the credential."
            )
        return SignInWanted(f"The server asks for a sign-in (HTTP {status}), and none is set up for it.")

    def _check_unchanged(self, spec: ToolSpec, tools: Sequence[mcp_types.Tool]) -> None:
        """A tool must not become another one behind the back of the administrator who chose it."""
        now = next((tool for tool in tools if tool.name == spec.key), None)
        if now is None:
            raise ToolError(f"The server does not offer {spec.name} any more; an administrator reads its list anew.")
        if spec.definition.get("digest", catalogue.digest_of(now)) != catalogue.digest_of(now):
            raise ToolChanged(
                f"The server describes {spec.name} differently than when it was chosen. It is left alone until an "
                "administrator has looked at that."
            )


def _hearer() -> ProgressFnT:
    """What the server says of its progress shows that it is at work, and goes to whoever watches."""
    alive, of_call = sign_of_life(), telling.get()
    tell = of_call() if of_call else None

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        alive()
        if tell and math.isfinite(progress) and (total is None or math.isfinite(total)):
            tell(Progress(progress, total, message or ""))

    return hear


async def _list_resources(client: Client) -> ToolResult:
    """What there is to read, then the patterns of addresses by which more can be read."""
    lines = [_line(item.uri, item) for item in await _all(client.list_resources, "resources")]
    with contextlib.suppress(MCPError):  # servers without patterns do not know the question
        lines += [
            _line(item.uri_template, item) for item in await _all(client.list_resource_templates, "resource_templates")
        ]
    return ToolResult("\n".join(lines) or "There are no resources.")


async def _all(ask: Callable[..., Awaitable[Any]], name: str) -> list[Any]:
    items: list[Any] = []
    cursor = None
    for _ in range(catalogue.MAX_PAGES):
        page = await ask(cursor=cursor)
        items += getattr(page, name)
        cursor = page.next_cursor
        if not cursor or len(items) > MAX_RESOURCES:
            break
    return items[:MAX_RESOURCES]


def _line(address: str, item: Any) -> str:
    described = f": {' '.join(item.description.split())[:200]}" if item.description else ""
    return f"{address} ({item.name}){described}"


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
