"""How people sign in to an MCP server, as it says itself: RFC 9728, 8414, 7591, 8707, as the protocol has them.

What is found becomes an ordinary sign-in of the connector (`AuthScheme`), for `oauth.py` to use. All of it is fetched
through `agentapp.outbound`. Import it only where a sign-in is set up: the SDK is large.
"""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import mcp_types
from mcp.client.auth import utils
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import BaseModel, ValidationError

from agentapp.database import in_thread
from agentapp.outbound import OutboundError, Policy, Refused, Response, fetch
from tools_admin import credentials
from tools_admin.connector_models import Connector, origin_of
from tools_admin.connectors.base import ConnectorError, ConnectorUnavailable
from tools_admin.credential_models import AuthScheme
from tools_admin.oauth import OAuthError, hosts_for

M = TypeVar("M", bound=BaseModel)

MAX_BYTES = 1_000_000
GRANTS = ["authorization_code", "refresh_token"]
NAME = "default"
# How a client may show its secret, best first; "none" is a client without one, whom PKCE protects.
_CLIENT_AUTH = {"none": "none", "client_secret_basic": "basic", "client_secret_post": "post"}


async def set_up(connector: Connector, redirect_uri: Callable[[AuthScheme], str]) -> AuthScheme:
    """Finds out how to sign in, registers this installation where that is offered, and keeps both.

    Without registration the scheme has no `client_id`: an administrator enters one. Raises OAuthError,
    ConnectorError and ConnectorUnavailable with what is wrong.
    """
    challenge = await _challenge(connector)
    resource = await _resource(connector, challenge)
    server = await _authorization_server(connector, resource)
    scopes = utils.get_client_metadata_scopes(utils.extract_scope_from_www_auth(challenge), resource, server, GRANTS)
    scheme = await in_thread(_kept, connector, server, resource, scopes or "")
    if server.registration_endpoint and not scheme.client_id:
        client = await _register(connector, scheme, server, redirect_uri(scheme))
        await in_thread(_keep_client, scheme, client)
    return scheme


async def _challenge(connector: Connector) -> Response:
    """The refusal of somebody who has not signed in."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "agentapp", "version": "1"},
        },
    }
    accept = {"Accept": "application/json, text/event-stream"}
    answer = await _ask(connector, "POST", str(connector.settings["base_url"]), hello, headers=accept)
    if answer.status_code != 401:
        raise OAuthError(f"The server does not ask for a sign-in: it answers with HTTP {answer.status_code}.")
    return answer


async def _resource(connector: Connector, challenge: Response) -> ProtectedResourceMetadata | None:
    """What the server says of itself; None for one that says nothing, as those before 2025-06 do."""
    own = resource_url_from_server_url(str(connector.settings["base_url"]))
    told = utils.extract_resource_metadata_from_www_auth(challenge)
    for url in utils.build_protected_resource_metadata_discovery_urls(told, own):
        metadata = _read(ProtectedResourceMetadata, await _ask(connector, "GET", url))
        if metadata is not None:
            if not check_resource_allowed(own, str(metadata.resource)):
                raise OAuthError(f"The server describes the sign-in of another one: {str(metadata.resource)[:200]}")
            return metadata
    return None


async def _authorization_server(connector: Connector, resource: ProtectedResourceMetadata | None) -> OAuthMetadata:
    issuer = str(resource.authorization_servers[0]) if resource else None
    own = str(connector.settings["base_url"])
    for url in utils.build_oauth_authorization_server_metadata_discovery_urls(issuer, own):
        metadata = _read(OAuthMetadata, await _ask(connector, "GET", url))
        if metadata is not None:
            _check(connector, metadata, issuer or f"{url.partition('/.well-known')[0]}")
            return metadata
    raise OAuthError(f"The sign-in server {(issuer or own)[:200]} does not say how to sign in.")


def _check(connector: Connector, server: OAuthMetadata, issuer: str) -> None:
    """Nobody is sent, and no code is taken, to a place that the server of this name does not vouch for."""
    if not utils.issuers_match(str(server.issuer), issuer):
        raise OAuthError(f"The sign-in server calls itself {str(server.issuer)[:200]} and not {issuer[:200]}.")
    if "S256" not in (server.code_challenge_methods_supported or []):
        raise OAuthError("The sign-in server does not protect codes (PKCE with S256), so nobody is sent there.")
    for url in filter(None, (server.authorization_endpoint, server.token_endpoint, server.registration_endpoint)):
        inner = connector.inner and _host(str(url)) == _host(connector.origin)
        if url.scheme != "https" and not inner:
            raise OAuthError(f"The sign-in is not encrypted: {str(url)[:200]}")


def _host(url: str) -> str:
    return origin_of(url).rpartition(":")[0].partition("://")[2]


async def _register(
    connector: Connector, scheme: AuthScheme, server: OAuthMetadata, redirect_uri: str
) -> OAuthClientInformationFull:
    offered = server.token_endpoint_auth_methods_supported or ["client_secret_basic"]
    wanted = next((method for method in _CLIENT_AUTH if method in offered), None)
    if wanted is None:
        raise OAuthError(
            f"The sign-in server knows clients only by {', '.join(offered)[:200]}, which is not supported."
        )
    client = {
        "client_name": "agentapp",
        "redirect_uris": [redirect_uri],
        "grant_types": GRANTS,
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
        **({"scope": scheme.scopes} if scheme.scopes else {}),
    }
    answer = await _ask(connector, "POST", str(server.registration_endpoint), client)
    made = _read(OAuthClientInformationFull, answer, statuses=(200, 201))
    if made is None:
        reason = answer.text[:300] if answer.content else ""
        raise OAuthError(
            f"The sign-in server does not register this installation (HTTP {answer.status_code}). {reason}"
        )
    method = made.token_endpoint_auth_method or ("client_secret_basic" if made.client_secret else "none")
    if method not in _CLIENT_AUTH:
        raise OAuthError(f"The sign-in server wants to know this installation by {method[:100]!r}, not supported here.")
    made.token_endpoint_auth_method = method
    return made


def _kept(
    connector: Connector, server: OAuthMetadata, resource: ProtectedResourceMetadata | None, scopes: str
) -> AuthScheme:
    """The connector's sign-in. A client that was registered with another server is none with this one."""
    scheme = connector.schemes.filter(name=NAME).first() or AuthScheme(connector=connector, name=NAME, per_user=True)
    if scheme.pk and scheme.type != AuthScheme.Type.OAUTH_CODE:
        raise OAuthError("The connector has a sign-in already that an administrator made. Remove it first.")
    if scheme.found.get("issuer", "") not in ("", str(server.issuer)):
        scheme.client_id = ""
    scheme.type, scheme.scopes = AuthScheme.Type.OAUTH_CODE, scopes[:1_000]
    scheme.authorize_url, scheme.token_url = str(server.authorization_endpoint), str(server.token_endpoint)
    scheme.found = {
        "client_auth": "basic",
        **scheme.found,
        "issuer": str(server.issuer),
        "resource": str(resource.resource)
        if resource
        else resource_url_from_server_url(connector.settings["base_url"]),
        "names_itself": bool(server.authorization_response_iss_parameter_supported),
    }
    scheme.full_clean(exclude=["client_id", "connector"])
    scheme.save()
    credentials.drop_unbound(connector)
    return scheme


def _keep_client(scheme: AuthScheme, client: OAuthClientInformationFull) -> None:
    scheme.client_id = client.client_id[:300]
    scheme.found["client_auth"] = _CLIENT_AUTH[str(client.token_endpoint_auth_method)]
    scheme.save()
    if client.client_secret:
        credentials.store(scheme, None, {"client_secret": client.client_secret})


def _read(model: type[M], answer: Response, statuses: tuple[int, ...] = (200,)) -> M | None:
    if answer.status_code not in statuses:
        return None
    try:
        return model.model_validate_json(answer.content)
    except ValidationError:
        return None


async def _ask(
    connector: Connector, method: str, url: str, data: Any = None, headers: dict[str, str] | None = None
) -> Response:
    content = None if data is None else json.dumps(data).encode()
    shown = {
        "Accept": "application/json",
        "MCP-Protocol-Version": mcp_types.LATEST_PROTOCOL_VERSION,
        **({} if data is None else {"Content-Type": "application/json"}),
        **(headers or {}),
    }
    policy = Policy(hosts_for(connector, url), max_bytes=MAX_BYTES)
    try:
        return await fetch(method, url, policy=policy, headers=shown, content=content, timeout=connector.timeout)
    except Refused as error:
        raise ConnectorError(f"How to sign in could not be found out: {error}") from None
    except OutboundError as error:
        raise ConnectorUnavailable(f"How to sign in could not be found out: {error}") from None
