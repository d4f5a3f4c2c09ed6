"""From stored secrets to what signs a request in, at the last moment; and back out of every text.

A secret goes to the origin it was entered for and nowhere else: it counts only while its `binding` is the scheme's.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

from accounts.models import User
from tools_admin.connector_models import Connector, origin_of
from tools_admin.connectors.base import Authorization, ToolError
from tools_admin.credential_models import AuthScheme, Credential

Secret = dict[str, Any]  # token | username, password | client_secret, access_token, refresh_token, expires_at
MASK = "•••"
# Shorter ones would blacken ordinary words; whoever sets such a password has lost already.
SHORTEST_SECRET = 4


def store(scheme: AuthScheme, user: User | None, secret: Secret) -> Credential:
    """Keeps a secret for a person, or for all (None), bound to where it may go now."""
    values = {"secret": SecretStr(json.dumps(secret)), "binding": scheme.binding}
    credential, _ = Credential.objects.update_or_create(scheme=scheme, user=user, defaults=values)
    return credential


def read(credential: Credential) -> Secret:
    text = credential.secret.get_secret_value()
    return dict(json.loads(text)) if text else {}


def drop_unbound(connector: Connector) -> int:
    """Deletes credentials that were made for other addresses than the present ones; how many."""
    stale = [
        credential.pk
        for credential in Credential.objects.filter(scheme__connector=connector).select_related("scheme__connector")
        if credential.binding != credential.scheme.binding
    ]
    Credential.objects.filter(pk__in=stale).delete()
    return len(stale)


def find(scheme: AuthScheme, user_id: int | None) -> Credential | None:
    """The credential that this person's calls use; needs `scheme.credentials` prefetched or asks for them."""
    found = {c.user_id: c for c in scheme.credentials.all() if c.binding == scheme.binding}
    if not scheme.per_user:
        return found.get(None)
    own = found.get(user_id) if user_id is not None else None
    return own or (found.get(None) if scheme.shared_fallback and _is_usable(scheme, found.get(None)) else None)


def _is_usable(scheme: AuthScheme, credential: Credential | None) -> bool:
    """The shared row of a code flow may hold no more than the client's secret."""
    if credential is None or scheme.type != AuthScheme.Type.OAUTH_CODE:
        return credential is not None
    return "access_token" in read(credential)


def chosen(
    schemes: Iterable[AuthScheme], user_id: int | None, wanted: Sequence[Sequence[str]] | None
) -> list[tuple[AuthScheme, Credential]]:
    """The schemes to sign in with: the first alternative for which all credentials are there.

    Raises ToolError when none is complete; the text says who has to do what.
    """
    by_name = {scheme.name: scheme for scheme in schemes}
    if wanted is None:
        wanted = [list(by_name)]
    for names in filter(None, wanted):  # who may sign in does, even where it is not necessary
        pairs = [(by_name[name], find(by_name[name], user_id)) for name in names if name in by_name]
        if len(pairs) == len(names) and all(credential for _, credential in pairs):
            return [(scheme, credential) for scheme, credential in pairs if credential]
    if not wanted or [] in [list(names) for names in wanted]:
        return []
    own = any(by_name[name].per_user for names in wanted for name in names if name in by_name)
    raise ToolError(
        "The user has to connect their own account first, on the page “My connections”."
        if own
        else "No credential is set up for this; an administrator enters it at the connector."
    )


def authorization(pairs: Iterable[tuple[AuthScheme, Secret]]) -> Authorization:
    """What these secrets put into a request."""
    headers, query, cookies, secrets = dict[str, str](), dict[str, str](), dict[str, str](), list[str]()
    for scheme, secret in pairs:
        secrets += [str(value) for name, value in secret.items() if name not in ("username", "expires_at") and value]
        if scheme.type == AuthScheme.Type.BASIC:
            both = base64.b64encode(f"{secret.get('username', '')}:{secret.get('password', '')}".encode()).decode()
            headers["Authorization"] = f"Basic {both}"
            secrets.append(both)
        elif scheme.type == AuthScheme.Type.API_KEY:
            places = {"header": headers, "query": query, "cookie": cookies}
            places[scheme.place][scheme.parameter or "X-API-Key"] = str(secret.get("token", ""))
        else:
            headers["Authorization"] = f"Bearer {secret.get('access_token') or secret.get('token', '')}"
    return Authorization(headers, query, cookies, tuple(secrets))


def goes_to(connector: Connector, url: str) -> bool:
    return bool(connector.origin) and origin_of(url) == connector.origin


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text without these values, also as an address, JSON or a header in Latin-1 would spell them."""
    spellings = {
        spelling
        for secret in secrets
        if len(secret) >= SHORTEST_SECRET
        for plain in (secret, secret.encode(errors="replace").decode("latin-1"))
        for spelling in (plain, quote(plain, safe=""), quote_plus(plain), json.dumps(plain)[1:-1])
    }
    for spelling in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelling, MASK)
    return text
