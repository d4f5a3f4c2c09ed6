"""Use cases of sign-in: the first administrator, and bearer keys."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from accounts.errors import SetupLinkInvalid, UserUnknown
from accounts.models import ApiKey, IdempotentAnswer, SetupLink, User
from accounts.scopes import Scope
from agentapp.database import prepared_cursor
from agentapp.plain_rows import Columns

KEY_PREFIX = "aa_"
# Precise enough to find unused keys, coarse enough not to write a row with every request.
LAST_USED_PRECISION = timedelta(minutes=1)

_KEY, _USER = Columns(ApiKey), Columns(User)
# `ApiKey.objects.usable()` by its digest, with its user.
_USABLE = f"""
SELECT {_KEY.of("key")}, {_USER.of("holder")}
FROM accounts_apikey key JOIN accounts_user holder ON holder.id = key.user_id
WHERE key.digest = %s AND key.revoked_at IS NULL AND holder.is_active
  AND (key.expires_at IS NULL OR key.expires_at > statement_timestamp())
"""  # noqa: S608 - nothing in it comes from outside


def digest_of(secret: str) -> str:
    """Secrets of 32 random bytes need no salt and no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _administrator_exists() -> bool:
    return User.objects.filter(is_superuser=True, is_active=True).exists()


def setup_link() -> str | None:
    """The path of a fresh one-time link that makes the first administrator; it supersedes the one before.

    None when there is an active administrator.
    """
    if _administrator_exists():
        return None
    token = secrets.token_urlsafe(32)
    SetupLink.objects.update_or_create(
        used_at=None, defaults={"digest": digest_of(token), "created_at": timezone.now()}
    )
    return reverse("setup", args=[token])


def is_setup_link_open(token: str) -> bool:
    """Whether `redeem_setup_link` would accept the token now."""
    return SetupLink.objects.filter(digest=digest_of(token), used_at=None).exists() and not _administrator_exists()


@transaction.atomic
def redeem_setup_link(token: str, username: str, password: str, email: str = "") -> User:
    """Makes the first administrator, once; raises `SetupLinkInvalid`. A failure leaves the link as it was."""
    # Of two requests the second waits here for the first one's commit, and then finds the link used.
    used = SetupLink.objects.filter(digest=digest_of(token), used_at=None).update(used_at=timezone.now())
    if not used or _administrator_exists():
        raise SetupLinkInvalid("This set-up link has been used, or a newer one has replaced it.")
    return User.objects.create_superuser(username, email, password)


def ensure_admin(username: str, password: str) -> User:
    """Makes an administrator unless somebody has that user name; an existing account stays exactly as it is.

    It runs at every start: a password changed since, or rights withdrawn since, must outlive a restart.
    """
    if not username or not password:
        raise ValueError("ADMIN_USERNAME and ADMIN_PASSWORD must both be set.")
    user, _ = User.objects.get_or_create(
        username__iexact=username,
        defaults={
            "username": username,
            "password": make_password(password),
            "is_staff": True,
            "is_superuser": True,
        },
    )
    return user


def active_user(username: str) -> User:
    """The active account of that user name, in any case; raises `UserUnknown`."""
    user = User.objects.filter(username__iexact=username, is_active=True).first()
    if user is None:
        raise UserUnknown(f"There is no active user named {username!r}.")
    return user


def create_api_key(
    user: User,
    name: str,
    expires_at: datetime | None = None,
    *,
    scopes: Iterable[str] = tuple(Scope),
    addresses: Iterable[str] = (),
) -> tuple[ApiKey, str]:
    """A new key and its text, which exists nowhere else and cannot be shown again."""
    text = KEY_PREFIX + secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        user=user,
        name=name,
        scopes=[str(scope) for scope in scopes],
        addresses=list(addresses),
        prefix=text[:9],
        digest=digest_of(text),
        expires_at=expires_at,
    )
    return key, text


def revoke_api_key(key: ApiKey) -> None:
    """Closes a key for good, at once."""
    ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())


def usable_key(bearer: str) -> ApiKey | None:
    """The bearer's key with its user, now: None when it is unknown, revoked, expired or its user disabled. One query,
    and in plain words, as every request of a program begins with it."""
    if not bearer.startswith(KEY_PREFIX):
        return None
    with prepared_cursor() as cursor:
        cursor.execute(_USABLE, [digest_of(bearer)])
        row = cursor.fetchone()
    if row is None:
        return None
    values = iter(row)
    key = _KEY.row(values)
    key.user = _USER.row(values)
    key.user.by_key_id, key.user.key_scopes = key.pk, frozenset(key.scopes)
    return key


def key_for_authorization(header: str) -> ApiKey | None:
    """The same for the value of an `Authorization` header."""
    scheme, _, bearer = header.strip().partition(" ")
    return usable_key(bearer.strip()) if scheme.lower() == "bearer" else None


def note_use(key: ApiKey) -> None:
    """Remembers when a key was used last, in at most one statement a minute."""
    now = timezone.now()
    if key.last_used_at is None or key.last_used_at < now - LAST_USED_PRECISION:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - LAST_USED_PRECISION)
        ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)


def forget_idempotent_answers() -> None:
    """Those that are older than a day (see `idempotency.py`)."""
    IdempotentAnswer.objects.filter(expires_at__lte=timezone.now()).delete()
