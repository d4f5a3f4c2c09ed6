"""Who calls: the holder of a bearer key, or a signed-in page. One class for requests, event streams and sockets."""

from typing import Any

from allauth.account.adapter import get_adapter
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from accounts import services
from accounts.errors import AddressRefused, ScopeMissing, TooOften
from accounts.models import User
from accounts.rates import Count, count_request, count_stranger
from accounts.scopes import READING, Scope
from accounts.sign_ins import SignIn
from agentapp.database import in_thread


class ApiAuth(AuthBase):
    """`Authorization: Bearer aa_…`, or the session's cookie together with the CSRF token.

    A request that brings an `Authorization` header is judged by it alone: a dead key never falls back to a cookie.
    A key must have one of the `scopes`: unless they are named, `chat` to write, and `chat` or `runs:read` to read.
    `request.user` and `request.auth` are the caller. Raises `TooOften`, `ScopeMissing`, `AddressRefused`.
    """

    openapi_type: str = "http"
    openapi_scheme: str = "bearer"

    def __init__(self, *scopes: Scope, any_key: bool = False) -> None:
        super().__init__()
        self.scopes, self.any_key = scopes, any_key

    def __call__(self, request: HttpRequest) -> User | None:
        try:
            user = _whose(request)
        except AddressRefused as refused:
            _count(request, count_stranger(refused.address))
            raise
        if user is not None:
            _count(request, count_request(user))
            self._admit(request, user)
        elif "Authorization" in request.headers:
            _count(request, count_stranger(_address(request)))
        return user

    def identify(self, request: HttpRequest) -> User | None:
        """The same without counting."""
        user = _whose(request)
        if user is not None:
            self._admit(request, user)
        return user

    def _admit(self, request: HttpRequest, user: User) -> None:
        if not user.may(*(wanted := self.wanted(request.method or ""))):
            raise ScopeMissing(wanted)
        request.user = user

    def wanted(self, method: str) -> tuple[Scope, ...]:
        """The scopes of which a key needs one; none: any key will do."""
        if self.any_key:
            return ()
        return self.scopes or (READING if method in ("GET", "HEAD") else (Scope.CHAT,))


class AsyncApiAuth(ApiAuth):
    """The same for asynchronous endpoints."""

    async def __call__(self, request: HttpRequest) -> User | None:  # type: ignore[override]
        return await in_thread(super().__call__, request)


def _count(request: HttpRequest, count: Count) -> None:
    """What is refused later counts, too. Middleware writes the headers."""
    vars(request)["rate_headers"] = count.headers
    if count.refused:
        raise TooOften(count.wait)


def _whose(request: HttpRequest) -> User | None:
    header = request.headers.get("Authorization")
    return _session_user(request) if header is None else _key_user(request, header)


def _session_user(request: HttpRequest) -> User | None:
    user: Any = request.user
    if not user.is_authenticated:
        return None
    if check_csrf(request):
        raise HttpError(403, "The CSRF token is missing or wrong; reload the page.")
    return user if isinstance(user, User) else None


def _key_user(request: HttpRequest, header: str) -> User | None:
    key = services.key_for_authorization(header)
    if key is None:
        return None
    if key.addresses and not key.admits(address := _address(request)):
        raise AddressRefused(address)
    services.note_use(key)
    return key.user


def _address(request: HttpRequest) -> str:
    """Where the caller is: behind a proxy of ours, what it says. The same that sign-in counts attempts by."""
    try:
        return str(get_adapter().get_client_ip(request))
    except PermissionDenied:
        return ""


def sign_in_of(request: HttpRequest) -> SignIn:
    """By what the caller came in, for a connection that lasts."""
    user = caller(request)
    if user.by_key_id is not None:
        return SignIn(user.pk, key=user.by_key_id)
    return SignIn(user.pk, session=request.session.session_key or "")


def caller(request: HttpRequest) -> User:
    """The user whom `ApiAuth` let in."""
    assert isinstance(request.user, User)  # noqa: S101
    return request.user
