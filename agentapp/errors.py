"""Domain errors become `application/problem+json` here and nowhere else."""

import logging
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from accounts.errors import AccountsError, ScopeMissing, StillAtWork, TooOften
from agentapp.request_log import current_request
from conversations.errors import ConversationError

log = logging.getLogger(__name__)


# What an error without a class of its own is called.
CODES = {
    400: "bad_request",
    401: "not_signed_in",
    403: "forbidden",
    404: "not_found",
    413: "too_large",
    422: "invalid_request",
    429: "rate_limited",
    500: "internal",
    503: "unavailable",
}


# Where errors of ours are, besides those of which this module knows.
_ERRORS = ("conversations.attachment_errors", "conversations.comparison.services", "conversations.webhooks.service")


def all_codes() -> list[str]:
    """Every `code` of the site."""
    for module in _ERRORS:
        import_module(module)

    def of(error: type[Any]) -> set[str]:
        return {error.code}.union(*(of(below) for below in error.__subclasses__()))

    return sorted({*CODES.values(), *of(AccountsError), *of(ConversationError)})


def problem(status: int, code: str, detail: str, **more: Any) -> HttpResponse:
    """RFC 9457: `code` is stable, `detail` is for people."""
    body = {"type": "about:blank", "status": status, "code": code, "detail": detail, **more}
    return JsonResponse(body, status=status, content_type="application/problem+json")


def register(api: NinjaAPI) -> None:
    @api.exception_handler(ConversationError)
    def domain(_request: HttpRequest, error: ConversationError) -> HttpResponse:
        return problem(error.status, error.code, error.message)

    @api.exception_handler(AccountsError)
    def refused_caller(_request: HttpRequest, error: AccountsError) -> HttpResponse:
        answer = problem(error.status, error.code, str(error))
        if isinstance(error, TooOften):
            answer["Retry-After"] = str(error.retry_after)
        elif isinstance(error, StillAtWork):
            answer["Retry-After"] = "1"
        elif isinstance(error, ScopeMissing):
            answer["WWW-Authenticate"] = f'Bearer error="insufficient_scope", scope="{" ".join(error.scopes)}"'
        return answer

    @api.exception_handler(ValidationError)
    def invalid(_request: HttpRequest, error: ValidationError) -> HttpResponse:
        fields = [{"where": ".".join(str(part) for part in e["loc"]), "what": e["msg"]} for e in error.errors]
        return problem(422, "invalid_request", "Some fields are missing or wrong; see `fields`.", fields=fields)

    @api.exception_handler(AuthenticationError)
    def not_signed_in(_request: HttpRequest, _error: AuthenticationError) -> HttpResponse:
        answer = problem(401, "not_signed_in", "Send an API key as `Authorization: Bearer aa_…`, or sign in.")
        answer["WWW-Authenticate"] = "Bearer"
        return answer

    @api.exception_handler(Http404)
    def missing(_request: HttpRequest, _error: Http404) -> HttpResponse:
        return problem(404, "not_found", "This does not exist or is not yours.")

    @api.exception_handler(HttpError)
    def refused(_request: HttpRequest, error: HttpError) -> HttpResponse:
        # Ninja puts words of its own before what our parser says of a body.
        detail = str(error.__cause__ if isinstance(error.__cause__, HttpError) else error)
        return problem(error.status_code, CODES.get(error.status_code, "bad_request"), detail)

    @api.exception_handler(RequestDataTooBig)
    def too_large(_request: HttpRequest, _error: RequestDataTooBig) -> HttpResponse:
        return problem(
            413, "too_large", f"The body is too large: {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes at most."
        )

    @api.exception_handler(SuspiciousOperation)
    @api.exception_handler(MultiPartParserError)
    def unreadable(_request: HttpRequest, _error: Exception) -> HttpResponse:
        return problem(400, "bad_request", "The request is malformed, too large, or has too many parts.")

    @api.exception_handler(DatabaseError)
    def unavailable(_request: HttpRequest, error: DatabaseError) -> HttpResponse:
        log.warning("The database does not answer: %s", str(error).strip()[:200])
        answer = problem(503, "unavailable", "The service is interrupted. Nothing was changed; try again in a moment.")
        answer["Retry-After"] = "5"
        return answer

    @api.exception_handler(Exception)
    def unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
        number = current_request.get()
        log.error("Request %s: %s %s failed", number, request.method, request.path, exc_info=error)
        return problem(500, "internal", f"Something went wrong. An administrator finds it in the log under {number}.")
