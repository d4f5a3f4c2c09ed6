"""The admin's own Content-Security-Policy; the rest of the site keeps the strict one."""

from collections.abc import Callable

from csp.constants import UNSAFE_EVAL, UNSAFE_INLINE
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin


class AdminCSPMiddleware(MiddlewareMixin):
    """Unfold needs `unsafe-eval` for Alpine and inline styles; both only below /admin/."""

    get_response: Callable[[HttpRequest], HttpResponse]

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if request.path.startswith("/admin/"):
            response._csp_update = {"script-src": [UNSAFE_EVAL], "style-src": [UNSAFE_INLINE]}  # type: ignore[attr-defined]
        return response
