"""Secrets at rest: one field, encrypted with the newest of `ENCRYPTION_KEYS`, readable with any of them."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models
from pydantic import SecretStr


class UndecryptableSecret(Exception):
    """The stored secret was written with a key that is no longer in `ENCRYPTION_KEYS`."""


@lru_cache(maxsize=1)
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def encrypt(text: str) -> str:
    return _cipher(tuple(settings.ENCRYPTION_KEYS)).encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    try:
        return _cipher(tuple(settings.ENCRYPTION_KEYS)).decrypt(token.encode()).decode()
    except InvalidToken:
        raise UndecryptableSecret(
            "This secret cannot be read with the present ENCRYPTION_KEYS; enter it anew."
        ) from None


if TYPE_CHECKING:
    _TextField = models.TextField[SecretStr, SecretStr]
else:
    _TextField = models.TextField


class EncryptedTextField(_TextField):
    """Ciphertext in the database, `SecretStr` in Python: printing, serialising or logging a row never shows it.

    Assign `SecretStr("…")` (empty means no secret) and read with `.get_secret_value()`. Not editable: forms, API and
    admin offer their own write-only input.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"editable": False, "default": _no_secret, **kwargs})

    def from_db_value(self, value: str | None, *_: Any) -> SecretStr:
        return SecretStr(decrypt(value) if value else "")

    def to_python(self, value: Any) -> SecretStr:
        return value if isinstance(value, SecretStr) else SecretStr(value or "")

    def get_prep_value(self, value: Any) -> str:
        text = self.to_python(value).get_secret_value()
        return encrypt(text) if text else ""


def _no_secret() -> SecretStr:
    return SecretStr("")
