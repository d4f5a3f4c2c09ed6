"""The page's socket: `/ws/` as `docs/protocol.md` describes it. Close codes are known here and nowhere else."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID

import orjson
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import DatabaseError

from accounts.models import User
from accounts.services import user_for_authorization
from agentapp.database import in_thread
from conversations import approvals, reconciliation, services
from conversations.errors import ConversationError
from conversations.hub import Entry, process_hub
from conversations.live import user_key
from conversations.watch import Watch

log = logging.getLogger(__name__)

NOT_SIGNED_IN, TOO_SLOW = 4401, 4408
QUEUE_LENGTH = 5_000
CHECK_USER_SECONDS = 10.0


class PageConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One socket a page: the user's own stream, and the runs of the conversations it watches."""

    user: User

    async def connect(self) -> None:
        self._outbox: asyncio.Queue[bytes] = asyncio.Queue(QUEUE_LENGTH)
        self._watches: dict[UUID, Watch] = {}
        self._tasks: list[asyncio.Task[None]] = []
        user = await in_thread(_user, self.scope) if _same_origin(self.scope) else None
        await self.accept()
        if user is None:
            await self.close(code=NOT_SIGNED_IN)
            return
        self.user = user
        await process_hub().join(user_key(user.pk), self._deliver, from_start=False)
        self._tasks = [asyncio.create_task(job) for job in (self._send_for_ever(), self._check_user_for_ever())]

    async def disconnect(self, code: int) -> None:
        for task in self._tasks:
            task.cancel()
        for watch in self._watches.values():
            watch.end()
        if hasattr(self, "user"):
            process_hub().leave(user_key(self.user.pk), self._deliver)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        action: Any = None
        try:
            action = orjson.loads(text_data or bytes_data or b"")
            handler = _ACTIONS.get(action["type"])
            if handler is None:
                raise ValueError(f"There is no action {action['type']!r}.")
            await handler(self, action)
        except ConversationError as error:
            self._refuse(action, error.code, error.message)
        except DatabaseError as error:
            log.warning("The database does not answer: %s", str(error).strip()[:200])
            self._refuse(
                action, "unavailable", "The service is interrupted. Your text is kept and sent again by itself."
            )
        except (ValueError, KeyError, TypeError) as error:
            self._refuse(action, "bad_request", f"The request could not be read: {error}")

    async def send_message(self, action: dict[str, Any]) -> None:
        conversation = UUID(str(action["conversation"])) if action.get("conversation") else None
        sent = await in_thread(
            services.send_message,
            self.user,
            str(action["content"]),
            conversation_id=conversation,
            client_id=str(action.get("client_id") or ""),
        )
        self._put(
            {
                "type": "ack",
                "client_id": action.get("client_id"),
                "conversation": str(sent.conversation.id),
                "message": str(sent.message.id),
                "run": str(sent.run.id),
                "injected": sent.injected,
            }
        )
        watch = self._watches.get(sent.conversation.id)
        if watch is None:
            await self._watch(sent.conversation.id, {})
        else:
            await watch.follow(sent.run.id)

    async def cancel(self, action: dict[str, Any]) -> None:
        await in_thread(services.cancel_run, self.user, UUID(str(action["run"])))

    async def retry(self, action: dict[str, Any]) -> None:
        run = await in_thread(services.retry_run, self.user, UUID(str(action["run"])))
        if watch := self._watches.get(run.conversation_id):
            await watch.follow(run.id)

    async def decide(self, action: dict[str, Any]) -> None:
        decision = str(action["decision"])
        if decision not in approvals.DECISIONS:
            raise ValueError(f"a decision is one of {', '.join(approvals.DECISIONS)}")
        edited = action.get("args")
        if edited is not None and not isinstance(edited, dict):
            raise ValueError("args must be an object")
        comment = str(action.get("comment") or "")
        number = UUID(str(action["approval"]))
        await in_thread(approvals.decide, self.user, number, decision, edited=edited, comment=comment)

    async def resolve(self, action: dict[str, Any]) -> None:
        outcome = str(action["outcome"])
        if outcome not in reconciliation.OUTCOMES:
            raise ValueError(f"an outcome is one of {', '.join(reconciliation.OUTCOMES)}")
        run, call, result = UUID(str(action["run"])), str(action["call"]), str(action.get("result") or "")
        await in_thread(reconciliation.resolve, self.user, run, call, outcome, result)

    async def watch(self, action: dict[str, Any]) -> None:
        after = {UUID(run): int(seq) for run, seq in (action.get("after") or {}).items()}
        await self._watch(UUID(str(action["conversation"])), after)

    async def unwatch(self, action: dict[str, Any]) -> None:
        if watch := self._watches.pop(UUID(str(action["conversation"])), None):
            watch.end()

    async def _watch(self, conversation: UUID, after: dict[UUID, int]) -> None:
        if old := self._watches.pop(conversation, None):
            old.end()
        watch = Watch(self.user, conversation, after, self._enqueue)
        await watch.begin()
        self._watches[conversation] = watch

    def _deliver(self, entry: Entry) -> None:
        """An envelope of the user's own stream; a run that begins in a watched conversation is followed."""
        self._enqueue(entry[1])
        body = orjson.loads(entry[1])
        if body["channel"] == "run" and body["data"]["status"] in ("queued", "running"):
            watch = self._watches.get(UUID(body["data"]["conversation"]))
            if watch:
                self._tasks.append(asyncio.create_task(watch.follow(UUID(body["data"]["id"]))))

    def _refuse(self, action: Any, code: str, message: str) -> None:
        client_id = action.get("client_id") if isinstance(action, dict) else None
        self._put(
            {"type": "error", "code": code, "message": message, **({"client_id": client_id} if client_id else {})}
        )

    def _put(self, body: dict[str, Any]) -> None:
        self._enqueue(orjson.dumps(body))

    def _enqueue(self, body: bytes) -> None:
        try:
            self._outbox.put_nowait(body)
        except asyncio.QueueFull:
            self._tasks.append(asyncio.create_task(self.close(code=TOO_SLOW)))

    async def _send_for_ever(self) -> None:
        while True:
            body = await self._outbox.get()
            await self.send(text_data=body.decode())

    async def _check_user_for_ever(self) -> None:
        while True:
            await asyncio.sleep(CHECK_USER_SECONDS)
            with contextlib.suppress(DatabaseError):
                if not await in_thread(User.objects.filter(pk=self.user.pk, is_active=True).exists):
                    await self.close(code=NOT_SIGNED_IN)


_ACTIONS: dict[str, Callable[[PageConsumer, dict[str, Any]], Any]] = {
    "send": PageConsumer.send_message,
    "cancel": PageConsumer.cancel,
    "retry": PageConsumer.retry,
    "decide": PageConsumer.decide,
    "resolve": PageConsumer.resolve,
    "watch": PageConsumer.watch,
    "unwatch": PageConsumer.unwatch,
}


def _user(scope: dict[str, Any]) -> User | None:
    """The bearer key's user, or the session's; a request with a key is judged by it alone."""
    header = dict(scope["headers"]).get(b"authorization")
    if header is not None:
        return user_for_authorization(header.decode("latin-1"))
    from django.contrib.auth import get_user
    from django.http import HttpRequest

    request = HttpRequest()
    request.session = scope["session"]
    user = get_user(request)
    return user if isinstance(user, User) and user.is_active else None


def _same_origin(scope: dict[str, Any]) -> bool:
    """A browser names the page's origin; programs with a key need none."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin-1")
    if not origin:
        return b"authorization" in headers
    host = headers.get(b"host", b"").decode("latin-1")
    allowed = {f"http://{host}", f"https://{host}", settings.PUBLIC_URL}
    return origin in allowed
