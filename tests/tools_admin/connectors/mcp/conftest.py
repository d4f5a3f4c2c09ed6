import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.product import eventually, free_port
from tools_admin.connectors.base import Setup, ToolSpec
from tools_admin.connectors.mcp.connector import McpConnector
from tools_admin.connectors.mcp.links import links

BIN = Path(sys.executable).parent
NODE_BIN = Path(__file__).parents[4] / "node_modules" / ".bin"
RUDE = [sys.executable, str(Path(__file__).with_name("rude_server.py"))]


@pytest_asyncio.fixture
async def serve(settings, tmp_path):
    """Connects to a command by stdio; all connections are closed at the end."""

    def connect(*command: str, **more) -> McpConnector:
        settings.MCP_COMMANDS = {"server": list(command)}
        return McpConnector(Setup({"command": "server"}, version=" ".join(command), **more))

    yield connect
    await links().close_all()


@pytest.fixture
def time_server(serve) -> McpConnector:
    return serve(str(BIN / "mcp-server-time"), "--local-timezone", "UTC")


@pytest.fixture
def everything(serve) -> McpConnector:
    return serve(str(NODE_BIN / "mcp-server-everything"), "stdio")


@pytest.fixture(scope="session")
def everything_url() -> Iterator[str]:
    with everything_over_http() as url:
        yield url


@contextmanager
def everything_over_http() -> Iterator[str]:
    """`server-everything` with Streamable HTTP; gives its address."""
    port = free_port()
    with _listening([str(NODE_BIN / "mcp-server-everything"), "streamableHttp"], port, PORT=str(port)) as url:
        yield url


@contextmanager
def over_http(*command: str) -> Iterator[str]:
    """A server of the standard streams with Streamable HTTP before it; gives its address."""
    port = free_port()
    with _listening([sys.executable, str(Path(__file__).with_name("over_http.py")), str(port), *command], port) as url:
        yield url


@contextmanager
def _listening(command: list[str], port: int, **environment: str) -> Iterator[str]:
    process = subprocess.Popen(
        command,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: _answers(port), "the server listens")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


@pytest_asyncio.fixture
async def everything_http(everything_url):
    yield McpConnector(Setup({"base_url": everything_url}, allowed_hosts=frozenset({"127.0.0.1"}), id=7))
    await links().close_all()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def going_on(connector: McpConnector, task: asyncio.Task[Any]) -> None:
    """Returns when the task's call is on its way to the server."""
    link = await connector._link()
    async with asyncio.timeout(20):
        while not link._calls or link._client is None:
            if task.done():
                task.result()
            await asyncio.sleep(0.02)


async def call(connector: McpConnector, name: str, **arguments):
    """A call as an agent's: with the tool as the server described it."""
    specs = {spec.key: spec for spec in await connector.discover()}
    return await connector.call(specs.get(name) or ToolSpec(name, "", {}, key=name), arguments)


@pytest_asyncio.fixture
async def reach():
    """Connects to an address of this machine; all connections are closed at the end."""
    yield lambda url: McpConnector(Setup({"base_url": url}, allowed_hosts=frozenset({"127.0.0.1"}), version=url))
    await links().close_all()
