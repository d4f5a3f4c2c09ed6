"""OAuth 2 for connectors: authorization code with PKCE, client credentials, tokens kept fresh (RFC 6749, 7636).

Token endpoints are reached through `agentapp.outbound` like everything else. Import it only where tokens are needed.
"""

import asyncio
import base64
import hashlib
import json
import secrets
import time
from collections.abc import Collection
from typing import Any
from urllib.parse import quote, urlencode
from weakref import WeakValueDictionary

from agentapp.database import in_thread
from agentapp.outbound import OutboundError, Policy, fetch
from tools_admin.connector_models import Connector, origin_of
from tools_admin.connectors.base import ConnectorUnavailable, ToolError
from tools_admin.credential_models import AuthScheme, Credential
from tools_admin.credentials import Secret, find, read, redact, store

# A token that is about to expire is replaced before it is used.
MARGIN_SECONDS = 30
_renewing: WeakValueDictionary[tuple[int, int], asyncio.Lock] = WeakValueDictionary()
_SECRET = ("code", "code_verifier", "refresh_token")
_FLOWS = (AuthScheme.Type.OAUTH_CODE, AuthScheme.Type.OAUTH_CLIENT)


class OAuthError(ToolError):
    """The sign-in did not work; the text is the server's own where it gave one."""


def new_verifier() -> str:
    return secrets.token_urlsafe(64)


def authorization_url(scheme: AuthScheme, redirect_uri: str, state: str, verifier: str) -> str:
    """Where to send the person who is to agree."""
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    query = {
        "response_type": "code",
        "client_id": scheme.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        **({"scope": scheme.scopes} if scheme.scopes else {}),
        **_audience(scheme),
    }
    return f"{scheme.authorize_url}{'&' if '?' in scheme.authorize_url else '?'}{urlencode(query)}"


def _audience(scheme: AuthScheme) -> dict[str, str]:
    """For whom a token is meant, where the server says so: no other one takes it (RFC 8707)."""
    return {"resource": scheme.found["resource"]} if scheme.found.get("resource") else {}


def comes_from(scheme: AuthScheme, issuer: str | None) -> bool:
    """Whether the server that a person came back from is the one they were sent to (RFC 9207)."""
    if issuer is None:
        return not scheme.found.get("names_itself")
    return bool(issuer == scheme.found.get("issuer", issuer))


async def exchange(scheme: AuthScheme, connector: Connector, code: str, redirect_uri: str, verifier: str) -> Secret:
    """The tokens for an authorization code; raises OAuthError."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier,
        **_audience(scheme),
    }
    return await _tokens(scheme, connector, form, await in_thread(_client_secret, scheme))


async def fresh(scheme: AuthScheme, credential: Credential, connector: Connector) -> Secret:
    """The credential's secret with an access token that is still good; raises OAuthError, ConnectorUnavailable."""
    secret = read(credential)
    if scheme.type not in _FLOWS or _is_good(secret):
        return secret
    # A refresh token is good for one use: calls of one process take turns, the later ones find the work done.
    lock = _renewing.setdefault((id(asyncio.get_running_loop()), credential.pk), asyncio.Lock())
    async with lock:
        if good := await _renewed_meanwhile(credential):
            return good
        try:
            renewed = {**secret, **await _renew(scheme, connector, secret)}
        except OAuthError:
            # Another worker may have used the refresh token; then what it got counts.
            if good := await _renewed_meanwhile(credential):
                return good
            raise
        await in_thread(lambda: store(scheme, credential.user, renewed))
        return renewed


def expire(scheme: AuthScheme, user_id: int | None, refused: Collection[str]) -> bool:
    """Marks a token that its server does not take any more, so that it is renewed. False: that cannot help."""
    credential = find(scheme, user_id) if scheme.type in _FLOWS else None
    latest = Credential.objects.filter(pk=credential.pk).first() if credential else None
    secret = read(latest) if latest else {}
    if latest is None or not (scheme.type == AuthScheme.Type.OAUTH_CLIENT or secret.get("refresh_token")):
        return False
    if secret.get("access_token") in refused:  # else another call has renewed it meanwhile
        store(scheme, latest.user, {**secret, "expires_at": 0})
    return True


async def _renewed_meanwhile(credential: Credential) -> Secret | None:
    latest = await in_thread(lambda: Credential.objects.filter(pk=credential.pk).first())
    secret = read(latest) if latest and latest.binding == credential.binding else {}
    return secret if _is_good(secret) else None


async def _renew(scheme: AuthScheme, connector: Connector, secret: Secret) -> Secret:
    if scheme.type == AuthScheme.Type.OAUTH_CLIENT:
        form = {"grant_type": "client_credentials", **({"scope": scheme.scopes} if scheme.scopes else {})}
        return await _tokens(scheme, connector, form, str(secret.get("client_secret", "")))
    if not secret.get("refresh_token"):
        raise OAuthError("The user's connection has expired; they connect again on the page “My connections”.")
    form = {"grant_type": "refresh_token", "refresh_token": str(secret["refresh_token"]), **_audience(scheme)}
    return await _tokens(scheme, connector, form, await in_thread(_client_secret, scheme))


def _is_good(secret: Secret) -> bool:
    expires = secret.get("expires_at")
    return bool(secret.get("access_token")) and (expires is None or expires > time.time() + MARGIN_SECONDS)


def _client_secret(scheme: AuthScheme) -> str:
    shared = next((c for c in scheme.credentials.all() if c.user_id is None and c.binding == scheme.binding), None)
    return str(read(shared).get("client_secret", "")) if shared else ""


def hosts_for(connector: Connector, url: str) -> frozenset[str]:
    """Hosts of the inner network that a sign-in may reach: those of the connector, and other ports of its host."""
    from tools_admin.calls import allowed_hosts

    hosts = allowed_hosts(connector)
    if connector.inner and origin_of(url).rpartition(":")[0] == connector.origin.rpartition(":")[0]:
        hosts |= {origin_of(url).partition("://")[2]}
    return hosts


async def _tokens(scheme: AuthScheme, connector: Connector, form: dict[str, str], client_secret: str) -> Secret:
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    if client_secret and scheme.found.get("client_auth") == "post":
        form = {**form, "client_id": scheme.client_id, "client_secret": client_secret}
    elif client_secret:
        both = f"{quote(scheme.client_id, safe='')}:{quote(client_secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(both.encode()).decode()}"
    else:
        form = {**form, "client_id": scheme.client_id}
    policy = Policy(hosts_for(connector, scheme.token_url), max_bytes=1_000_000)
    try:
        answer = await fetch(
            "POST",
            scheme.token_url,
            policy=policy,
            headers=headers,
            content=urlencode(form).encode(),
            timeout=connector.timeout,
        )
    except OutboundError as error:
        raise ConnectorUnavailable(f"The sign-in server does not answer: {error}") from None
    try:
        return _read_tokens(answer.status_code, answer.content)
    except OAuthError as error:  # a server may repeat what it was sent, and people and models read this
        sent = [client_secret, *(form[name] for name in _SECRET if name in form)]
        raise OAuthError(redact(str(error), sent)[:330]) from None


def _read_tokens(status: int, content: bytes) -> Secret:
    try:
        data: Any = json.loads(content)
    except ValueError:
        data = None
    if status != 200 or not isinstance(data, dict) or not isinstance(data.get("access_token"), str):
        told = data if isinstance(data, dict) else {}
        reason = str(told.get("error_description") or told.get("error") or f"HTTP {status}")
        raise OAuthError(f"The sign-in was refused: {reason}")
    if str(data.get("token_type", "bearer")).lower() != "bearer":
        raise OAuthError("The sign-in gave a token of a type that cannot be used.")
    secret: Secret = {"access_token": data["access_token"]}
    if isinstance(data.get("refresh_token"), str):
        secret["refresh_token"] = data["refresh_token"]
    seconds = data.get("expires_in")
    secret["expires_at"] = time.time() + float(seconds) if isinstance(seconds, int | float) else None
    return secret
