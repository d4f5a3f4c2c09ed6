"""What a provider's error means: one of our classes, its words, and how long it asks us to wait."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from .errors import (
    BadModelRequest,
    ContentFiltered,
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)

_FILTER_CODES = {"content_filter", "content_policy_violation", "contentfilter", "data_inspection_failed"}
_OVERFLOW_CODES = {
    "context_length_exceeded",
    "too_many_prompt_tokens",
    "exceed_context_size_error",
    "request_too_large",
}
_QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"}
_TRANSIENT_CODES = {"overloaded_error", "server_error", "rate_limit_error", "rate_limit_exceeded", "internal_error"}

_OVERFLOW_TEXT = re.compile(
    r"(maximum|max\w*|available|increasing|the model'?s?) context (length|size|window)"
    r"|context[ _](length|size|window) (is )?(exceeded|limit|of)|exceeds? the (model'?s |available |maximum )*context"
    r"|(prompt|inputs?|messages?|request|context|conversation)\b[^.]{0,60}\btoo (long|large|many tokens)"
    r"|too many (input |prompt )?tokens|reduce the (length|size|number of tokens)"
    r"|exceeds? the (maximum|max|limit)[^.]{0,40}tokens?|tokens?[^.]{0,40}exceeds? the (maximum|limit)"
    r"|(prompt|input|request)[^.]{0,40}exceeds? the (token )?limit",
    re.IGNORECASE,
)
_QUOTA_TEXT = re.compile(
    r"exceeded your current quota|insufficient[ _](quota|balance|credits?|funds)|credit balance is too low"
    r"|out of credits|payment required|billing (hard )?limit",
    re.IGNORECASE,
)
_WAIT_TEXT = re.compile(
    r"(?:again|retry|wait)[^.]{0,30}?\b(?:in|after|for)\s+((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|h|hours?|m|minutes?|s|seconds?)(?![a-z])\s*)+)"
    r"|\"?retryDelay\"?:\s*\"?(\d+(?:\.\d+)?s)",
    re.IGNORECASE,
)
_WAIT_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|h|m|s)", re.IGNORECASE)
SHORTEST_SECRET = 5  # below that it may as well be a word
_SECONDS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def error_of_response(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error that an HTTP answer with this status is."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body[:500].decode("utf-8", "replace").strip()
        return classify(status, {"message": text or f"HTTP {status}"}, headers)
    return classify(status, error_object(value) or {"message": f"HTTP {status}"}, headers)


def without_secret(body: bytes, secret: str) -> bytes:
    """Some endpoints repeat the key that they refuse."""
    return body.replace(secret.encode(), b"[key]") if len(secret) > SHORTEST_SECRET else body


def error_object(value: Any) -> dict[str, Any] | None:
    """The error inside an answer, whatever it is wrapped in; None when there is none."""
    if isinstance(value, list):
        return error_object(value[0]) if value else None
    if not isinstance(value, dict):
        return None
    error = value.get("error")
    if isinstance(error, dict) and error:
        return error
    if isinstance(error, str) and error:
        return {**value, "message": error}
    if "choices" in value:
        return None
    message = value.get("detail") or value.get("message")
    if not message:
        return None
    return {**value, "message": message if isinstance(message, str) else orjson.dumps(message).decode()}


def classify(status: int | None, error: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> ModelError:
    """Our class for a provider's error. `status` is None for an error that came inside a stream or with 200."""
    message = _message(error)
    code = str(error.get("code") or "")
    codes = {code.lower(), str(error.get("type") or "").lower(), str(error.get("status") or "").lower()}
    if status is None or status < 400:
        status = _inner_status(error)
    wait = _wait(headers or {}, message)
    if codes & _FILTER_CODES:
        return ContentFiltered(message, status=status, code=code)
    if codes & _OVERFLOW_CODES or status == 413 or (_may_overflow(status) and _OVERFLOW_TEXT.search(message)):
        return ContextOverflow(message, status=status, code=code)
    if codes & _QUOTA_CODES or (status in (402, 403, 429) and wait is None and _QUOTA_TEXT.search(message)):
        return ModelRefused(message, status=status, code=code)
    if status in (401, 402, 403, 404):
        return ModelRefused(message, status=status, code=code)
    if status in (None, 408, 409, 425, 429) or (status or 0) >= 500 or codes & _TRANSIENT_CODES:
        return ModelUnavailable(message, retry_after=wait, status=status, code=code)
    return BadModelRequest(message, status=status, code=code)


def _may_overflow(status: int | None) -> bool:
    """A rate limit speaks of tokens too, and is no overflow."""
    return status in (None, 400, 422, 500)


def _inner_status(error: Mapping[str, Any]) -> int | None:
    for name in ("status", "code", "status_code"):
        value = error.get(name)
        if isinstance(value, int | str) and str(value).isdigit() and 400 <= int(value) < 600:
            return int(value)
    return None


def _message(error: Mapping[str, Any]) -> str:
    message = error.get("message")
    text = message if isinstance(message, str) else "" if message is None else orjson.dumps(message).decode()
    if text.lstrip().startswith("{"):
        try:
            inner = error_object(orjson.loads(text))
        except orjson.JSONDecodeError:
            inner = None
        if inner is not None:
            return _message(inner)
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(raw, str) and raw:
        text = f"{text}: {raw}"
    return text or str(error.get("code") or error.get("type") or "unknown error")


def _wait(headers: Mapping[str, str], message: str) -> float | None:
    """Seconds to wait: milliseconds, seconds or a date in a header, or words in the message."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1_000)
        if "retry-after" in headers:
            return _retry_after(headers["retry-after"])
    except ValueError:
        pass
    found = _WAIT_TEXT.search(message)
    if found is None:
        return None
    parts = _WAIT_PART.findall(found.group(1) or found.group(2))
    return sum(float(number) * _SECONDS[unit.lower()] for number, unit in parts)


def _retry_after(value: str) -> float:
    try:
        return max(0.0, float(value))
    except ValueError:
        moment = parsedate_to_datetime(value)
        return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())
