"""An MCP server on the web under the test's control: what it does in a call is the name of the tool."""

import asyncio
import json
from typing import Any
from urllib.parse import parse_qs

from tests.hostile import HostileServer

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
NAMES = (
    "echo",
    "endless_events",
    "endless_comments",
    "huge_event",
    "huge_answer",
    "wrong_ids",
    "elsewhere",
    "html",
    "half",
    "gone",
    "silent",
    "works",
)


class McpOnTheWeb(HostileServer):
    """`said` are the messages of its clients in order; `tools` may be changed; `protected` asks for a sign-in."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[dict[str, Any]] = []
        self.tools = {name: {"name": name, "description": f"Does {name}.", "inputSchema": SCHEMA} for name in NAMES}
        self.protected = False
        self.tokens: set[str] = set()
        self.metadata: dict[str, Any] = {}  # what differs from honest metadata of the sign-in
        self.registered: list[dict[str, Any]] = []
        self.exchanged: list[dict[str, str]] = []
        self.steps, self.pause = 5, 0.05

    def methods(self, name: str) -> int:
        """How often a method was called."""
        return sum(message.get("method") == name for message in self.said)

    @property
    def address(self) -> str:
        return f"{self.url}/mcp"

    async def _answer(self, path: str, writer: asyncio.StreamWriter) -> None:
        head, body = self.requests[-1], self.bodies[-1]
        if path != "/mcp":
            self._sign_in(path, body, writer)
        elif self.protected and not any(f"authorization: bearer {t}\r\n" in head.lower() for t in self.tokens):
            told = f"{self.url}/.well-known/oauth-protected-resource/mcp"
            _reply(writer, 401, {}, f'WWW-Authenticate: Bearer resource_metadata="{told}", scope="tools"')
        elif not head.startswith("POST"):
            _reply(writer, 405 if head.startswith("GET") else 200, {})
        else:
            message = json.loads(body)
            self.said.append(message)
            await self._speak(message, writer)
        await writer.drain()

    async def _speak(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        method, number = message.get("method"), message.get("id")
        if number is None or "result" in message:
            _reply(writer, 202, None)
        elif method == "initialize":
            capabilities = {"tools": {"listChanged": True}}
            info = {"name": "web", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
            _reply(writer, 200, _result(number, result), "Mcp-Session-Id: s1")
        elif method == "tools/list":
            _reply(writer, 200, _result(number, {"tools": list(self.tools.values())}))
        elif method == "tools/call":
            await self._call(number, message["params"], writer)
        else:
            _reply(writer, 200, {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "Unknown"}})

    async def _call(self, number: Any, params: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        name, answer = params["name"], _result(number, _text(params.get("arguments", {}).get("text", "done")))
        if name == "elsewhere":
            _reply(writer, 307, {}, "Location: http://169.254.169.254/latest/meta-data")
        elif name == "html":
            _raw(writer, 200, "text/html", b"<h1>Please sign in</h1>")
        elif name == "gone":
            _reply(writer, 404, {})
        elif name == "huge_answer":
            _reply(writer, 200, _result(number, _text("x" * 21_000_000)))
        elif name == "silent":
            await asyncio.sleep(600)
        elif name in ("endless_events", "endless_comments", "huge_event", "wrong_ids", "half", "works"):
            _raw(writer, 200, "text/event-stream", None)
            await self._stream(name, number, params, answer, writer)
        else:
            _reply(writer, 200, answer)

    async def _stream(
        self, name: str, number: Any, params: dict[str, Any], answer: dict[str, Any], writer: asyncio.StreamWriter
    ) -> None:
        noise = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 1_000}}
        while name == "endless_events":
            await _event(writer, noise)
        while name == "endless_comments":
            writer.write(b": still here\n\n" * 1_000)
            await writer.drain()
        if name == "huge_event":
            await _event(writer, _result(number, _text("x" * 21_000_000)))
        elif name == "half":
            writer.write(b'data: {"jsonrpc": "2.0", "id"')
        elif name == "wrong_ids":
            for other in (f"{number}0", None, "nobody"):
                await _event(writer, {**noise, "method": "notifications/progress", "params": {
                    "progressToken": other, "progress": 1}})  # fmt: skip
            await _event(writer, answer)
        elif name == "works":
            token = params.get("_meta", {}).get("progressToken")
            for step in range(self.steps):
                told = {"progressToken": token, "progress": step, "total": self.steps, "message": f"step {step}"}
                await _event(writer, {"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
                await asyncio.sleep(self.pause)
            await _event(writer, answer)

    # Signing in -------------------------------------------------------------------------------------------------------

    def _sign_in(self, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if path == "/.well-known/oauth-protected-resource/mcp" and "no_resource" not in self.metadata:
            described = {"resource": self.address, "authorization_servers": [self.url], "scopes_supported": ["all"]}
            _reply(writer, 200, described | self.metadata.get("resource", {}))
        elif path == "/.well-known/oauth-authorization-server":
            told: dict[str, Any] = {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "registration_endpoint": f"{self.url}/register",
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
                "authorization_response_iss_parameter_supported": True,
            }
            told |= self.metadata.get("server", {})
            _reply(writer, 200, {name: value for name, value in told.items() if value is not None})
        elif path == "/register":
            self.registered.append(json.loads(body))
            made = {**self.registered[-1], "client_id": "client-1", "client_secret": "s3cret-of-client"}
            _reply(writer, 201, made)
        elif path == "/token":
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            self.exchanged.append(form)
            token = f"access-{len(self.exchanged)}"
            self.tokens = {token}
            _reply(writer, 200, {"access_token": token, "token_type": "Bearer", "refresh_token": "refresh-1"})
        else:
            _reply(writer, 404, {})


def _result(number: Any, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _reply(writer: asyncio.StreamWriter, status: int, value: Any, header: str = "X-Nothing: 1") -> None:
    _raw(writer, status, "application/json", b"" if value is None else json.dumps(value).encode(), header)


def _raw(
    writer: asyncio.StreamWriter, status: int, kind: str, body: bytes | None, header: str = "X-Nothing: 1"
) -> None:
    length = "" if body is None else f"Content-Length: {len(body)}\r\n"
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{header}\r\n{length}Connection: close\r\n\r\n"
    writer.write(head.encode() + (body or b""))


async def _event(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
    await writer.drain()
