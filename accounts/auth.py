"""Who calls the API: the holder of a bearer key, or a signed-in page."""

from typing import Any

from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from accounts.models import User
from accounts.rates import count_request
from accounts.services import key_for_authorization, user_for_authorization
from accounts.sign_ins import SignIn
from agentapp.database import in_thread


class ApiAuth(AuthBase):
    """`Authorization: Bearer aa_…`, or the session's cookie together with the CSRF token.

    A request that brings an `Authorization` header is judged by it alone: a dead key never falls back to a cookie.
    `request.user` and `request.auth` are the caller. Raises `TooOften`.
    """

    openapi_type: str = "http"
    openapi_scheme: str = "bearer"

    def __call__(self, request: HttpRequest) -> User | None:
        header = request.headers.get("Authorization")
        user = self._session_user(request) if header is None else user_for_authorization(header)
        if user is not None:
            request.user = user
            count_request(user)
        return user

    @staticmethod
    def _session_user(request: HttpRequest) -> User | None:
        user: Any = request.user
        if not user.is_authenticated:
            return None
        if check_csrf(request):
            raise HttpError(403, "The CSRF token is missing or wrong; reload the page.")
        return user if isinstance(user, User) else None


class AsyncApiAuth(ApiAuth):
    """The same for asynchronous endpoints."""

    async def __call__(self, request: HttpRequest) -> User | None:  # type: ignore[override]
        return await in_thread(super().__call__, request)


def sign_in_of(request: HttpRequest) -> SignIn:
    """By what the caller came in, for a response that lasts."""
    header = request.headers.get("Authorization")
    if header is None:
        return SignIn(caller(request).pk, session=request.session.session_key or "")
    key = key_for_authorization(header)
    return SignIn(caller(request).pk, key=key.pk if key else 0)


def caller(request: HttpRequest) -> User:
    """The user whom `ApiAuth` let in."""
    user: User = request.auth  # type: ignore[attr-defined]
    return user
