"""One HTTP request of a connector, and its answer as a tool's result."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from agentapp.engine import Artifact, ToolResult
from agentapp.outbound import OutboundError, Policy, Refused, Response, fetch, parse
from tools_admin.connectors.base import ConnectorError, ConnectorUnavailable, Setup, ToolError, idempotency_key

MAX_ERROR_CHARS = 2_000
_AWAY = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class Request:
    """`path` and `query` are encoded already; headers hold nothing secret. `security` as in `Authorize`."""

    method: str
    url: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    security: Sequence[Sequence[str]] | None = None


async def send(setup: Setup, request: Request) -> Response:
    """Signs the request in and sends it. Raises ToolError, ConnectorError, ConnectorUnavailable."""
    signed = await setup.authorize(request.url, request.security)
    pairs = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in signed.query.items())
    query = "&".join(part for part in (request.query, pairs) if part)
    headers = {**request.headers, **signed.headers}
    if (key := idempotency_key()) and request.method.upper() not in ("GET", "HEAD"):
        headers["Idempotency-Key"] = key
    if signed.cookies:
        own = [headers[name] for name in headers if name.lower() == "cookie"]
        headers["Cookie"] = "; ".join([*own, *(f"{name}={value}" for name, value in signed.cookies.items())])
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or re.search(r"[^\t\x20-\x7e\x80-\U0010ffff]", value):
            raise ToolError(f"The header {name!r} cannot hold this value.")
    address = f"{request.url}?{query}" if query else request.url
    setup.note(_shown(request.method, address, headers, request.content))
    try:
        response = await fetch(
            request.method,
            address,
            policy=Policy(setup.allowed_hosts),
            headers=headers,
            content=request.content,
            timeout=setup.timeout,
        )
    except Refused as error:
        raise ConnectorError(str(error)) from None
    except OutboundError as error:
        raise ConnectorUnavailable(str(error)) from None
    if response.status_code in _AWAY:
        raise ConnectorUnavailable(f"{parse(request.url).host} answers {_status(response)}.")
    return response


def result_of(response: Response, select: Any = None) -> ToolResult:
    """What the model is told: JSON (or `select(value)` of it), text, or a file. Errors keep the server's words."""
    if response.status_code >= 400:
        return ToolResult(f"{_status(response)}\n{_text(response)[:MAX_ERROR_CHARS]}".strip(), is_error=True)
    if not response.content:
        return ToolResult(f"{_status(response)}, without content.")
    kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind in ("application/json", "") or kind.endswith("+json"):
        try:
            value = json.loads(response.content)
        except (ValueError, RecursionError):
            return ToolResult(_text(response))
        return ToolResult(json.dumps(select(value) if select else value, ensure_ascii=False))
    if kind.startswith("text/") or kind.endswith(("xml", "yaml", "javascript")):
        return ToolResult(_text(response))
    artifact = Artifact(_file_name(response), kind or "application/octet-stream", response.content)
    text = f"{_status(response)}: the file {artifact.filename} ({kind}, {len(artifact.data):,} bytes)."
    return ToolResult(text, artifacts=[artifact])


def _shown(method: str, address: str, headers: Mapping[str, str], content: bytes | None) -> str:
    lines = [f"{method} {address}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\n".join([*lines, "", content[:20_000].decode(errors="replace")] if content else lines)


def _status(response: Response) -> str:
    return f"HTTP {response.status_code} {response.reason_phrase}".strip()


def _text(response: Response) -> str:
    try:
        return response.text
    except LookupError:  # a character set that nobody knows
        return response.content.decode(errors="replace")


def _file_name(response: Response) -> str:
    """The name that the server gives, or the last piece of the path; never with a folder in it."""
    told = re.search(r'filename="?([^";]+)', response.headers.get("content-disposition", ""))
    name = told.group(1) if told else unquote(urlsplit(str(response.url)).path)
    return re.split(r"[/\\]", name.rstrip("/"))[-1].strip().lstrip(".")[:100] or "file"
