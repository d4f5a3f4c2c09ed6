"""Follows a run for the program that asked for it. A run whose client has gone is stopped."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.db import DatabaseError

from accounts.models import User
from accounts.sign_ins import SignIn
from agentapp.database import in_thread
from agentapp.engine import RelayAgent
from conversations import services
from conversations.cleaning import to_json
from conversations.completions.errors import CompletionError
from conversations.completions.presence import presence
from conversations.events import channel_of
from conversations.models import RELAY, Call, Run
from conversations.sse import envelopes

log = logging.getLogger(__name__)

SECONDS_TO_RETRY = 5
_stopping: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class Step:
    """Something that the agent did, as an event of its run."""

    channel: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """The whole reply."""

    text: str
    finish_reason: str
    usage: dict[str, Any]
    tool_calls: list[dict[str, Any]] = field(default_factory=list)


Piece = str | Step | Ended | None  # None: nothing came for a while


class Reply:
    """One run on its way. `pieces` may be read once."""

    def __init__(self, run: Run, user: User, sign_in: SignIn) -> None:
        self._run, self._user, self._sign_in = run, user, sign_in
        self._text, self._gap, self._attempt = "", "", 0
        self._ended = False

    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """Text and steps as they come, and at last `Ended`; raises CompletionError.

        Left before its end it stops the run.
        """
        try:
            with presence.of(self._run.id):
                async with aclosing(envelopes(self._run.id, 0, self._sign_in, new=True)) as batches:
                    async for bodies in batches:
                        if not bodies:
                            yield None
                        for piece in await self._read(bodies):
                            yield piece
                        if self._ended:
                            return
            raise CompletionError(503, "The connection to the run was lost; it is stopped.", kind="server_error")
        finally:
            if not self._ended:
                _keep(asyncio.create_task(_stop(self._user, self._run)))

    async def _read(self, bodies: list[bytes]) -> list[Piece]:
        """The pieces of some envelopes; text that follows text is one of them."""
        pieces: list[Piece] = []
        text = ""
        for body in bodies:
            channel = channel_of(body)
            if channel == b"answer":
                text += self._said(orjson.loads(body)["data"])
                continue
            event = orjson.loads(body)
            if channel == b"done":
                self._ended = True
                ended = await self._end(event["data"])
                text += self._rest(ended.text)
                return [*pieces, text, ended] if text else [*pieces, ended]
            self._check_waits(event)
            pieces += [text, Step(event["channel"], event["data"])] if text else [Step(event["channel"], event["data"])]
            text = ""
        return [*pieces, text] if text else pieces

    def _said(self, data: dict[str, Any]) -> str:
        """What of an answer event is new."""
        if data["attempt"] > self._attempt:
            if self._text and self._run.mode == RELAY:
                raise CompletionError(503, "The reply broke off; ask again.", kind="server_error")
            # An agent that spoke before it went on to work: what a client has it keeps.
            self._gap = self._gap or ("\n\n" if self._text else "")
            self._text, self._attempt = "", data["attempt"]
        known = len(self._text)
        if data["status"] != "delta" or data["attempt"] < self._attempt or data["offset"] > known:
            return ""
        new: str = data["content"][known - data["offset"] :]
        self._text += new
        return self._after_gap(new)

    def _rest(self, answer: str) -> str:
        """What an answer has that was never streamed: a limit's words, or text that the live channel lost."""
        if answer.startswith(self._text):
            return self._after_gap(answer[len(self._text) :])
        return "" if self._run.mode == RELAY else f"\n\n{answer}"

    def _after_gap(self, text: str) -> str:
        if not text:
            return ""
        gap, self._gap = self._gap, ""
        return gap + text

    def _check_waits(self, event: dict[str, Any]) -> None:
        """A program would rather ask again than wait for half an hour."""
        data = event["data"]
        if event["channel"] == "run" and data["status"] == "queued" and data.get("reason"):
            raise CompletionError(
                503,
                "The model does not answer at the moment. Try again later.",
                kind="server_error",
                code=data["reason"],
                retry_after=SECONDS_TO_RETRY,
            )

    async def _end(self, done: dict[str, Any]) -> Ended:
        """The reply, or what stands in its way."""
        reason, usage = done["reason"], done["usage"]
        if done["status"] != Run.Status.COMPLETED:
            raise await in_thread(_failure, self._run)
        if reason == "limit:budget" and not usage.get("calls"):
            raise CompletionError(429, done["answer"], kind="insufficient_quota", code="insufficient_quota")
        if self._run.mode != RELAY or reason.startswith("limit:"):
            cut = reason.startswith("limit:") or reason == "max_iterations"
            return Ended(done["answer"], "length" if cut else "stop", usage)
        record = await in_thread(_record, self._run)
        calls = [_call(call) for call in record["message"].get("tool_calls", ())]
        return Ended(done["answer"], record["finish_reason"], usage, calls)


def _record(run: Run) -> dict[str, Any]:
    return Call.objects.values_list("result", flat=True).get(run=run, key=RelayAgent.KEY) or {}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    arguments = call.get("invalid") or to_json(call["arguments"]).decode()
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": arguments}}


# By the reason of a failed run; what is not here went wrong inside.
_FAILURES: dict[str, tuple[int, str, str]] = {
    "context_irreducible": (400, "invalid_request_error", "context_length_exceeded"),
    "content_filtered": (400, "invalid_request_error", "content_filter"),
    "model_error": (400, "invalid_request_error", "model_error"),
    "nothing_fits": (400, "invalid_request_error", "nothing_fits"),
    "no_model": (503, "server_error", "no_model"),
    "model_refused": (503, "server_error", "model_refused"),
    "model_unavailable": (503, "server_error", "model_unavailable"),
}


def _failure(run: Run) -> CompletionError:
    run.refresh_from_db(fields=["status", "reason", "error"])
    if run.status == Run.Status.CANCELLED:
        return CompletionError(409, "The run was stopped.", code="stopped")
    status, kind, code = _FAILURES.get(run.reason, (500, "server_error", run.reason))
    return CompletionError(status, run.error or "The run failed.", kind=kind, code=code)


async def _stop(user: User, run: Run) -> None:
    try:
        await in_thread(services.cancel_run, user, run.id)
    except DatabaseError as error:
        log.warning("Run %s goes on, its client has gone: %s", run.id, str(error).strip()[:200])


def _keep(task: asyncio.Task[None]) -> None:
    _stopping.add(task)
    task.add_done_callback(_stopping.discard)
