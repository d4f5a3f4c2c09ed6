"""`Idempotency-Key`: a POST that is sent again does nothing again.

The first one claims a row; its answer is kept there for a day, encrypted: it may hold a secret that is shown once. One
that fails gives the row back.
"""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja.decorators import decorate_view
from ninja.errors import HttpError
from ninja.operation import Operation
from ninja.utils import contribute_operation_callback
from pydantic import SecretStr

from accounts.auth import caller
from accounts.errors import KeyReused, StillAtWork
from accounts.models import IdempotentAnswer
from agentapp.database import in_thread

HEADER = "Idempotency-Key"
KEPT = timedelta(hours=24)
PATIENCE = timedelta(minutes=2)  # longer than any request takes: then its process is gone
_PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Sent again with the same key and body, the request is not done again: for 24 hours the first "
    "answer is given. Any text of up to 255 characters, such as a UUID.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}


def idempotent(view: Callable[..., Any]) -> Callable[..., Any]:
    """Below every `@router.post(…)`."""

    @wraps(view)
    def once(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return _claim(request) or view(request, *args, **kwargs)

    @wraps(view)
    async def once_async(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return await in_thread(_claim, request) or await view(request, *args, **kwargs)

    made: Callable[..., Any] = decorate_view(_settling)(once_async if iscoroutinefunction(view) else once)
    contribute_operation_callback(made, _describe)
    return made


def client_id(request: HttpRequest) -> str:
    """A sender's own id for what the request makes: done again after a crash, it still makes one message. With another
    body the key of days ago makes another one."""
    key = request.headers.get(HEADER)
    return f"idempotency-{hashlib.sha256(f'{key} {_digest(request)}'.encode()).hexdigest()[:48]}" if key else ""


def _claim(request: HttpRequest) -> HttpResponse | None:
    """The answer that is kept, or None: the request is to be done now. Raises KeyReused, StillAtWork."""
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not (0 < len(key) <= 255 and key.isascii() and key.isprintable() and " " not in key):
        raise HttpError(400, f"{HEADER} must have 1 to 255 printable characters without spaces.")
    mine = IdempotentAnswer.objects.filter(user=caller(request), key=key)
    mine.filter(expires_at__lte=timezone.now()).delete()
    digest = _digest(request)
    row, made = mine.get_or_create(
        user=caller(request), key=key, defaults={"digest": digest, "expires_at": timezone.now() + PATIENCE}
    )
    if made:
        vars(request)["idempotent_answer"] = row
        return None
    if row.digest != digest:
        raise KeyReused
    if row.status is None:
        raise StillAtWork
    answer = HttpResponse(
        row.answer.get_secret_value(), status=row.status, content_type="application/json; charset=utf-8"
    )
    answer["Idempotent-Replayed"] = "true"
    return answer


def _digest(request: HttpRequest) -> str:
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    if request.content_type != "multipart/form-data":
        digest.update(request.body)
        return digest.hexdigest()
    # The body has been read already, and its boundary is another one each time.
    files: list[tuple[str, Any]] = [(name, file) for name, given in request.FILES.lists() for file in given]
    for name, file in files:
        digest.update(repr((name, file.name, file.size)).encode())
        for chunk in file.chunks():
            digest.update(chunk)
        file.seek(0)
    return digest.hexdigest()


def _settle(request: HttpRequest, response: HttpResponse) -> None:
    row: IdempotentAnswer | None = vars(request).pop("idempotent_answer", None)
    if row is None:
        return
    if 200 <= response.status_code < 300:
        row.status, row.expires_at = response.status_code, timezone.now() + KEPT
        row.answer = SecretStr(response.content.decode())
        row.save(update_fields=["status", "answer", "expires_at"])
    else:
        row.delete()


def _settling(run: Callable[..., Any]) -> Callable[..., Any]:
    def settled(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = run(request, **kwargs)
        _settle(request, response)
        return response

    async def settled_async(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = await run(request, **kwargs)
        await in_thread(_settle, request, response)
        return response

    return settled_async if iscoroutinefunction(run) else settled


def _describe(operation: Operation) -> None:
    extra = dict(operation.openapi_extra or {})
    operation.openapi_extra = {**extra, "parameters": [*extra.get("parameters", []), _PARAMETER]}
