"""A call that may be repeated under a key has the same one each time, and services get to see it."""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest

from agentapp.engine import EffectClass, ToolResult
from agentapp.engine.tool_batch import _call_key
from tools_admin.connectors.base import Setup, ToolSpec, current_run, engine_tool, idempotency_key
from tools_admin.connectors.request import Request, send

RUN, POSITION = uuid4(), "react/3/tool/0"


def _spec(effect_class: EffectClass) -> ToolSpec:
    return ToolSpec("act", "Acts.", {"type": "object"}, effect_class)


async def _key(effect_class: EffectClass, run: UUID | None) -> str:
    async def call(spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolResult:
        return ToolResult(str(idempotency_key()))

    current_run.set(run)
    _call_key.set(POSITION)
    return (await engine_tool(call, _spec(effect_class)).execute({})).content


@pytest.mark.parametrize(
    ("effect_class", "run", "key"),
    [
        (EffectClass.IDEMPOTENT, RUN, str(uuid5(RUN, POSITION))),
        (EffectClass.IDEMPOTENT, None, "None"),
        (EffectClass.ONCE, RUN, "None"),
        (EffectClass.READ, RUN, "None"),
    ],
)
async def test_the_key_is_made_of_run_and_position(effect_class: EffectClass, run: UUID | None, key: str) -> None:
    assert [await _key(effect_class, run) for _ in range(2)] == [key, key]


@pytest.mark.parametrize(("method", "sent"), [("POST", True), ("DELETE", True), ("GET", False)])
async def test_requests_that_change_something_carry_it(method: str, sent: bool) -> None:
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

        async def call(spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolResult:
            await send(Setup(allowed_hosts=frozenset({host})), Request(method, f"http://{host}/"))
            return ToolResult("done")

        current_run.set(RUN)
        _call_key.set(POSITION)
        result = await engine_tool(call, _spec(EffectClass.IDEMPOTENT)).execute({})
    assert not result.is_error, result.content
    assert (f"idempotency-key: {uuid5(RUN, POSITION)}" in heads[0]) is sent
