"""Any MCP server of the standard streams, on the web: `over_http.py PORT COMMAND …`."""

import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from mcp import Client, StdioServerParameters
from mcp.server.lowlevel import Server


@contextlib.asynccontextmanager
async def behind(server: Any) -> AsyncIterator[Client]:
    async with Client(StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])) as client:
        yield client


async def list_tools(context: Any, params: Any) -> Any:
    return await context.lifespan_context.list_tools()


async def call_tool(context: Any, params: Any) -> Any:
    return await context.lifespan_context.call_tool(params.name, params.arguments or {})


server = Server("proxy", lifespan=behind, on_list_tools=list_tools, on_call_tool=call_tool)
uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
