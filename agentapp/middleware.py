"""What every request passes: the admin's own Content-Security-Policy, and words for a database that is away."""

import logging
import re
from collections.abc import Callable
from uuid import uuid4

from csp.constants import UNSAFE_EVAL, UNSAFE_INLINE
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from redis.exceptions import ConnectionError as RedisConnectionError

from agentapp.in_loop import InLoop
from agentapp.request_log import current_request

log = logging.getLogger(__name__)

_PLAIN = re.compile(r"[\w.:-]{1,64}", re.ASCII)


class AdminCSPMiddleware(InLoop):
    """Unfold needs `unsafe-eval` for Alpine and inline styles; both only below /admin/."""

    get_response: Callable[[HttpRequest], HttpResponse]

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if request.path.startswith("/admin/"):
            response._csp_update = {"script-src": [UNSAFE_EVAL], "style-src": [UNSAFE_INLINE]}  # type: ignore[attr-defined]
        return response


class RequestIdMiddleware(InLoop):
    """Every answer names its request, and so does every line of the log that is written meanwhile. The caller's own
    name for it is taken if it is a plain one. What a program has left of its limits goes along (`accounts.rates`)."""

    get_response: Callable[[HttpRequest], HttpResponse]

    def process_request(self, request: HttpRequest) -> None:
        given = request.headers.get("X-Request-ID", "")
        current_request.set(given if _PLAIN.fullmatch(given) else uuid4().hex)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response["X-Request-ID"] = current_request.get()
        for name, value in vars(request).get("rate_headers", {}).items():
            response[name] = value
        return response


class UnavailableMiddleware(MiddlewareMixin):
    """A page whose database or cache does not answer is a 503 that says so; the API has its own (`agentapp.errors`).

    Sign-in counts attempts in the cache, and without it lets nobody guess.
    """

    get_response: Callable[[HttpRequest], HttpResponse]

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, OperationalError | RedisConnectionError):
            return None
        log.warning("The database or the cache does not answer: %s", str(exception).strip()[:200])
        response = render(request, "503.html", status=503)
        response["Retry-After"] = "5"
        return response
