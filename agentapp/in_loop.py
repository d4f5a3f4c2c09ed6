"""Django's and others' middleware, run where the request is: on the event loop.

Django moves each step of such middleware to a thread and back, some twenty times a request, which is half of what a
short request costs. Only what may wait for the database, or reads a body, needs that.
"""

from typing import Any

from asgiref.sync import sync_to_async
from csp.middleware import CSPMiddleware
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.locale import LocaleMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.deprecation import MiddlewareMixin


class InLoop(MiddlewareMixin):
    """`waits` says whether a step may wait for something now, and so has to go to a thread."""

    def waits(self, request: HttpRequest) -> bool:
        return False

    async def __acall__(self, request: HttpRequest) -> Any:
        response = None
        if hasattr(self, "process_request"):
            response = await self._step(self.process_request, request)
        response = response or await self.get_response(request)  # type: ignore[misc]
        if hasattr(self, "process_response"):
            response = await self._step(self.process_response, request, response)
        return response

    async def _step(self, step: Any, request: HttpRequest, *response: HttpResponse) -> Any:
        return await sync_to_async(step)(request, *response) if self.waits(request) else step(request, *response)


class Security(InLoop, SecurityMiddleware):
    pass


class Sessions(InLoop, SessionMiddleware):
    def waits(self, request: HttpRequest) -> bool:
        """To be saved."""
        return hasattr(request, "session") and request.session.modified


class Locale(InLoop, LocaleMiddleware):
    pass


class Common(InLoop, CommonMiddleware):
    pass


class ContentPolicy(InLoop, CSPMiddleware):
    pass


class Csrf(InLoop, CsrfViewMiddleware):
    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)
        if self.async_mode:
            self.process_view = self._process_view  # type: ignore[method-assign, assignment]

    async def _process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        """The token may stand in the body, which is read for it."""
        look = super().process_view
        return look(request, *view) if request.method in ("GET", "HEAD") else await sync_to_async(look)(request, *view)


class Authentication(InLoop, AuthenticationMiddleware):
    pass


class Messages(InLoop, MessageMiddleware):
    def waits(self, request: HttpRequest) -> bool:
        """To be kept, which may be in the session."""
        storage = getattr(request, "_messages", None)
        return storage is not None and (storage.used or storage.added_new)


class Frames(InLoop, XFrameOptionsMiddleware):
    pass
