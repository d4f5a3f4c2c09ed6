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


class StoredSecret(SecretStr):
    """A secret of a row, decrypted when it is asked for: a row whose secret cannot be read is still a row."""

    def __init__(self, token: str) -> None:
        self.token = token

    @property
    def _secret_value(self) -> str:  # type: ignore[override]
        return decrypt(self.token)

    def __eq__(self, other: object) -> bool:
        try:
            return isinstance(other, SecretStr) and self.get_secret_value() == other.get_secret_value()
        except UndecryptableSecret:
            return False

    __hash__ = SecretStr.__hash__

    def _display(self) -> str:
        return "**********"


def encrypt(text: str) -> str:
    return _cipher(tuple(settings.ENCRYPTION_KEYS)).encrypt(text.encode()).decode()


def rotated(token: str) -> str:
    """The same secret, encrypted with the newest key; raises `UndecryptableSecret`."""
    try:
        return _cipher(tuple(settings.ENCRYPTION_KEYS)).rotate(token.encode()).decode()
    except InvalidToken:
        raise UndecryptableSecret("This secret cannot be read with the present ENCRYPTION_KEYS.") from None


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
        return StoredSecret(value) if value else SecretStr("")

    def to_python(self, value: Any) -> SecretStr:
        return value if isinstance(value, SecretStr) else SecretStr(value or "")

    def get_prep_value(self, value: Any) -> str:
        if isinstance(value, StoredSecret):
            return value.token
        text = self.to_python(value).get_secret_value()
        return encrypt(text) if text else ""


def _no_secret() -> SecretStr:
    return SecretStr("")
