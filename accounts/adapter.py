"""Sign-in rules that differ from django-allauth's defaults."""

import logging
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.stagekit import clear_login
from allauth.core import context as current
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from django.http import HttpRequest
from django.shortcuts import render

from agentapp.encryption import decrypt, encrypt

log = logging.getLogger(__name__)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def pre_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> Any:
        """Every way of signing in comes by here. A service account has none: programs use its keys."""
        if user.is_service:
            clear_login(request)
            return self.respond_user_inactive(request, user)
        return super().pre_login(request, user, **kwargs)

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        """One look for one login: asked by address and by name, a known address would take twice as long to refuse."""
        if credentials.get("username"):
            credentials.pop("email", None)
        return super().authenticate(request, **credentials)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """A mail server that is away is said in words, alike for known and unknown addresses."""
        try:
            super().send_mail(template_prefix, email, context)
        except OSError as error:
            log.error("The mail server does not take mail (%s).", type(error).__name__)
            raise ImmediateHttpResponse(render(current.request, "503.html", status=503)) from None


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Keys of authenticator apps and seeds of recovery codes are secrets at rest like any other."""

    def encrypt(self, text: str) -> str:
        return encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return decrypt(encrypted_text)
