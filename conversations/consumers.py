"""The page's socket: `/ws/` as `docs/protocol.md` describes it. Close codes are known here and nowhere else."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from io import BytesIO
from typing import Any
from uuid import UUID

import orjson
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError
from django.utils.translation import get_language_from_request, override
from django.utils.translation import gettext as _

from accounts.auth import ApiAuth, caller, sign_in_of
from accounts.errors import AddressRefused, ScopeMissing, TooOften
from accounts.models import User
from accounts.scopes import READING, Scope
from accounts.sign_ins import SignIn
from agentapp.database import in_thread
from agentapp.json_body import check_nesting
from conversations import approvals, questions, recalling, reconciliation, services
from conversations.errors import ConversationError
from conversations.hub import Entry, process_hub
from conversations.live import user_key
from conversations.outbox import Outbox
from conversations.visitors import process_visitors
from conversations.watch import Watch

log = logging.getLogger(__name__)

NOT_SIGNED_IN, NOT_ALLOWED, TOO_SLOW = 4401, 4403, 4408


class PageConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One socket a page: the user's own stream, and the runs of the conversations it watches."""

    user: User

    async def connect(self) -> None:
        self._outbox = Outbox(self._fall_behind)
        self._watches: dict[UUID, Watch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        request = _handshake(self.scope)
        came_in: tuple[User, SignIn] | int = NOT_SIGNED_IN
        if _same_origin(self.scope):
            came_in = await in_thread(_come_in, request)
        if isinstance(came_in, int):
            await self.accept()
            await self.close(code=came_in)
            return
        self.user, self._sign_in = came_in
        self._language = self.user.language or get_language_from_request(request)
        process_visitors().add(self._sign_in, self._sign_out)
        # Before the page hears that it is connected: from then on it misses nothing.
        await process_hub().join(user_key(self.user.pk), self._deliver, from_start=False)
        await self.accept()
        self._keep(self._send_for_ever())

    async def disconnect(self, code: int) -> None:
        self._leave()
        for task in self._tasks:
            task.cancel()

    def _leave(self) -> None:
        """Nothing comes in any more."""
        self._outbox.close()
        for watch in self._watches.values():
            watch.end()
        if hasattr(self, "user"):
            process_visitors().discard(self._sign_in, self._sign_out)
            process_hub().leave(user_key(self.user.pk), self._deliver)

    def _fall_behind(self) -> None:
        self._shut(TOO_SLOW)

    def _sign_out(self) -> None:
        self._shut(NOT_SIGNED_IN)

    def _shut(self, code: int) -> None:
        self._leave()
        self._keep(self.close(code=code))  # from a task of its own: the sender may be waiting for this very client

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        action: Any = None
        try:
            action = orjson.loads(text_data or bytes_data or b"")
            check_nesting(action)
            handler, scopes = _ACTIONS.get(action["type"], (None, ()))
            if handler is None:
                raise ValueError(f"There is no action {action['type']!r}.")
            if not self.user.may(*scopes):
                raise ScopeMissing(scopes)
            await handler(self, action)
        except ScopeMissing as error:
            with override(self._language):
                self._refuse(action, "insufficient_scope", str(error))
        except ConversationError as error:
            with override(self._language):
                self._refuse(action, error.code, error.message)
        except TooOften as error:
            with override(self._language):
                self._refuse(action, "rate_limited", str(error))
        except DatabaseError as error:
            log.warning("The database does not answer: %s", str(error).strip()[:200])
            with override(self._language):
                text = _("The service is interrupted. Your text is kept and sent again by itself.")
                self._refuse(action, "unavailable", text)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            self._refuse(action, "bad_request", f"The request could not be read: {error}")

    async def send_message(self, action: dict[str, Any]) -> None:
        conversation = UUID(str(action["conversation"])) if action.get("conversation") else None
        sent = await in_thread(
            services.send_message,
            self.user,
            str(action["content"]),
            conversation_id=conversation,
            client_id=str(action.get("client_id") or ""),
            mode=str(action.get("mode") or ""),
            agent=int(action["agent"]) if action.get("agent") else None,
            place=services.Place(UUID(str(action["parent"]))) if action.get("parent") else None,
            attachments=[UUID(str(number)) for number in action.get("attachments") or ()],
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
            watch = self._watches[sent.conversation.id] = Watch(self.user, sent.conversation.id, {}, self._outbox)
        # No other run of the conversation is going on.
        await watch.follow(sent.run.id, new=not (sent.injected or sent.again))

    async def recall(self, action: dict[str, Any]) -> None:
        await in_thread(recalling.recall_message, self.user, UUID(str(action["message"])))

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

    async def answer(self, action: dict[str, Any]) -> None:
        value, how = action.get("value"), str(action.get("action") or "accept")
        if how not in questions.STATES:
            raise ValueError(f"an action is one of {', '.join(questions.STATES)}")
        if not isinstance(value or {}, dict):
            raise ValueError("value must be an object")
        run, question = UUID(str(action["run"])), UUID(str(action["request"]))
        await in_thread(questions.answer, self.user, run, question, how, value or {})

    async def watch(self, action: dict[str, Any]) -> None:
        after = {UUID(run): int(seq) for run, seq in (action.get("after") or {}).items()}
        await self._watch(UUID(str(action["conversation"])), after)

    async def unwatch(self, action: dict[str, Any]) -> None:
        if watch := self._watches.pop(UUID(str(action["conversation"])), None):
            watch.end()

    async def _watch(self, conversation: UUID, after: dict[UUID, int]) -> None:
        if old := self._watches.pop(conversation, None):
            old.end()
        self._watches[conversation] = watch = Watch(self.user, conversation, after, self._outbox)
        try:
            await watch.begin()
        except BaseException:
            watch.end()
            del self._watches[conversation]
            raise

    def _deliver(self, entry: Entry) -> None:
        """An envelope of the user's own stream; a run that begins in a watched conversation is followed."""
        self._outbox.put(entry[1])
        if b'"channel":"run"' not in entry[1] or not self._watches:
            return
        body = orjson.loads(entry[1])
        if body["channel"] == "run" and body["data"]["status"] in ("queued", "running"):
            watch = self._watches.get(UUID(body["data"]["conversation"]))
            if watch:
                self._keep(self._follow(watch, UUID(body["data"]["id"])))

    async def _follow(self, watch: Watch, run: UUID) -> None:
        try:
            await watch.follow(run)
        except DatabaseError as error:
            log.warning("The database does not answer: %s", str(error).strip()[:200])

    def _refuse(self, action: Any, code: str, message: str) -> None:
        client_id = action.get("client_id") if isinstance(action, dict) else None
        self._put(
            {"type": "error", "code": code, "message": message, **({"client_id": client_id} if client_id else {})}
        )

    def _put(self, body: dict[str, Any]) -> None:
        self._outbox.put(orjson.dumps(body))

    async def _send_for_ever(self) -> None:
        while (body := await self._outbox.get()) is not None:
            await self.base_send({"type": "websocket.send", "text": body.decode()})


_Action = Callable[[PageConsumer, dict[str, Any]], Any]
# What a client may ask for, and the scopes of which its key needs one.
_ACTIONS: dict[str, tuple[_Action, tuple[Scope, ...]]] = {
    "send": (PageConsumer.send_message, (Scope.CHAT,)),
    "recall": (PageConsumer.recall, (Scope.CHAT,)),
    "cancel": (PageConsumer.cancel, (Scope.CHAT,)),
    "retry": (PageConsumer.retry, (Scope.CHAT,)),
    "decide": (PageConsumer.decide, (Scope.APPROVE,)),
    "resolve": (PageConsumer.resolve, (Scope.APPROVE,)),
    "answer": (PageConsumer.answer, (Scope.CHAT,)),
    "watch": (PageConsumer.watch, READING),
    "unwatch": (PageConsumer.unwatch, READING),
}


def _handshake(scope: dict[str, Any]) -> ASGIRequest:
    """The socket's handshake as the request that it is."""
    request = ASGIRequest({**scope, "method": "GET"}, BytesIO())
    request.session = scope["session"]
    return request


def _come_in(request: ASGIRequest) -> tuple[User, SignIn] | int:
    """The same way in as for requests, or the code to close with."""
    request.user = get_user(request)
    try:
        entered = ApiAuth(*READING).identify(request)
    except (ScopeMissing, AddressRefused):
        return NOT_ALLOWED
    return (caller(request), sign_in_of(request)) if entered else NOT_SIGNED_IN


def _same_origin(scope: dict[str, Any]) -> bool:
    """A browser names the page's origin; programs with a key need none."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin-1")
    if not origin:
        return b"authorization" in headers
    host = headers.get(b"host", b"").decode("latin-1")
    allowed = {f"http://{host}", f"https://{host}", settings.PUBLIC_URL}
    return origin in allowed
