"""A run as Server-Sent Events: the envelopes of the page's socket, for programs and where WebSockets do not pass."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from accounts.sign_ins import SignIn
from conversations.events import channel_of, deltas, seq_of
from conversations.models import Run
from conversations.outbox import Outbox
from conversations.visitors import process_visitors
from conversations.watch import Follow, Snapshot

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
MEDIA_TYPE = "text/event-stream"


def described(event: dict[str, str], schema: dict[str, Any]) -> dict[str, Any]:
    """For the API's document: each event of a stream, by one of them; `schema` is that of its `data`."""
    parts = {name: {"type": "string"} for name in event} | {"data": {"type": "string", **schema}}
    return {MEDIA_TYPE: {"schema": {"type": "object", "properties": parts, "required": ["data"]}, "example": event}}


def wants_stream(request: HttpRequest) -> bool:
    return MEDIA_TYPE in request.headers.get("Accept", "")


def position(request: HttpRequest, after: int) -> int:
    """The last event that the client has: a client that comes back by itself says so in a header."""
    last = request.headers.get("Last-Event-ID", "")
    return int(last) if last.isascii() and last.isdecimal() and len(last) < 10 else after


def stream_run(run: Run, after: int, sign_in: SignIn) -> HttpResponseBase:
    """The events after `after`, the answer so far, then what comes, until `done`.

    204 when there is nothing to come: it tells a client that reconnects by itself to stop.
    """
    if not run.is_active and after >= run.next_seq - 1:
        return HttpResponse(status=204)
    response = StreamingHttpResponse(_parts(run.id, after, sign_in), content_type=f"{MEDIA_TYPE}; charset=utf-8")
    response["Cache-Control"] = "no-store, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


async def _parts(run: UUID, after: int, sign_in: SignIn) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    async with aclosing(envelopes(run, after, sign_in)) as batches:
        async for bodies in batches:
            yield b"".join(map(_part, bodies)) or b": still there\n\n"


async def envelopes(run: UUID, after: int, sign_in: SignIn, *, new: bool = False) -> AsyncGenerator[list[bytes], None]:
    """Envelopes of a run until its end, as many as are there; an empty list when none came for a while.

    It ends early when the client falls behind, or may no longer come in. A `new` run was queued by this request.
    """
    outbox = Outbox(lambda: None)  # a client that falls behind is cut off, and comes back with `Last-Event-ID`
    following = asyncio.create_task(_follow(Follow(run, after, outbox, _text_so_far, new=new), outbox))
    process_visitors().add(sign_in, outbox.fail)
    try:
        while (bodies := await _next(outbox)) is not None:
            yield bodies
    finally:
        process_visitors().discard(sign_in, outbox.fail)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _follow(follow: Follow, outbox: Outbox) -> None:
    try:
        await follow.begin()
        await follow.ended.wait()
        outbox.end()
    except DatabaseError as error:
        log.warning("The database does not answer: %s", str(error).strip()[:200])
        outbox.fail()
    finally:
        follow.end()


async def _next(outbox: Outbox) -> list[bytes] | None:
    """What is there now; an empty list when nothing came for a while, None when nothing will."""
    try:
        async with asyncio.timeout(HEARTBEAT_SECONDS):
            return await outbox.get_all() or None
    except TimeoutError:
        return []


def _part(body: bytes) -> bytes:
    """An envelope on the wire. It has an `id` where a client can come back to: deltas have none."""
    seq = seq_of(body)
    number = b"id: " + seq + b"\n" if seq else b""
    return number + b"event: " + channel_of(body) + b"\ndata: " + body + b"\n\n"


def _text_so_far(snapshot: Snapshot) -> Iterable[bytes]:
    """None of a run that has ended: `done` has the answer, and is the last event."""
    if snapshot.status not in Run.ACTIVE:
        return ()
    return deltas(snapshot.run, snapshot.text, 0, snapshot.attempt)
