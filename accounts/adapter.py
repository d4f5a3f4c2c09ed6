"""Sign-in rules that differ from django-allauth's defaults."""

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from django.http import HttpRequest

from agentapp.encryption import decrypt, encrypt


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Keys of authenticator apps and seeds of recovery codes are secrets at rest like any other."""

    def encrypt(self, text: str) -> str:
        return encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return decrypt(encrypted_text)
