"""A stream in small pieces is read in gulps, and nothing of it is late that need not be."""

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import pairwise

import httpx2
import pytest

from tools_admin.clients import for_program
from tools_admin.gathering import (
    MANY_PROGRAMS,
    PATIENT_AFTER,
    PAUSE,
    PAUSE_FOR_MANY_PROGRAMS,
    PAUSE_FOR_PROGRAMS,
    GatheringTransport,
)

PIECES = 200
BURST = 100_000  # more than is kept of a reply that nobody reads


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while request := await reader.readuntil(b"\r\n\r\n"):
        if b"stream" in request:
            pieces = PIECES * 3 if b"long" in request else PIECES
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (pieces * 4))
            for number in range(pieces):
                writer.write(b"%03d " % number)
                await writer.drain()
                await asyncio.sleep(0.002)
        elif b"/burst" in request:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            writer.write(BURST * b"4\r\n1234\r\n" + b"0\r\n\r\n")
            await writer.drain()
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        if b"/last" in request:
            break
    writer.close()


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, httpx2.AsyncClient(base_url=url, transport=GatheringTransport(httpx2.Limits())) as client:
        yield client
        await client.get("/last")


async def test_a_stream_comes_whole_in_few_reads_and_its_beginning_at_once(client: httpx2.AsyncClient) -> None:
    began = time.monotonic()
    arrivals, parts = [], []
    async with client.stream("GET", "/stream") as response:
        async for part in response.aiter_raw():
            arrivals.append(time.monotonic() - began)
            parts.append(part)
    assert b"".join(parts) == b"".join(b"%03d " % number for number in range(PIECES))
    assert PATIENT_AFTER <= len(parts) < PIECES / 3
    assert arrivals[0] < arrivals[-1] / 4
    assert max(after - before for before, after in pairwise(arrivals)) < PAUSE * 6


async def test_what_programs_read_comes_in_fewer_pieces_the_more_of_them_read(client: httpx2.AsyncClient) -> None:
    async def read(pause: float) -> None:
        began = time.monotonic()
        async with client.stream("GET", "/long-stream") as response:
            pieces = len([part async for part in response.aiter_raw()])
        assert pieces <= PATIENT_AFTER + 2 + (time.monotonic() - began) / pause

    await read(PAUSE)
    for_program.set(True)
    await read(PAUSE_FOR_PROGRAMS)
    await asyncio.gather(*(read(PAUSE_FOR_MANY_PROGRAMS) for _ in range(MANY_PROGRAMS)))
    assert not client._transport._programs, "none is counted that has ended"  # type: ignore[attr-defined]


async def test_plain_replies_do_not_wait(client: httpx2.AsyncClient) -> None:
    async with client.stream("GET", "/stream") as response:
        await response.aread()
    began = time.monotonic()
    for _ in range(20):
        assert (await client.get("/plain")).json() == {}
    assert time.monotonic() - began < 20 * PAUSE


async def test_a_reply_that_comes_all_at_once_in_small_chunks_is_read_to_its_end(client: httpx2.AsyncClient) -> None:
    async with client.stream("GET", "/burst") as response:
        size = 0
        async for part in response.aiter_raw():
            size += len(part)
    assert size == BURST * 4
    assert (await client.get("/plain")).json() == {}
