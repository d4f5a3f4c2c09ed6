"""The ways to sign in that an OpenAPI document describes, as rows."""

from typing import TYPE_CHECKING, Any

from tools_admin.models import AuthScheme, Connector

if TYPE_CHECKING:
    from tools_admin.connectors.openapi.operations import Reader

_Type, _Place = AuthScheme.Type, AuthScheme.Place


def add_schemes(connector: Connector, reader: "Reader") -> list[str]:
    """Adds those that are new; what was set up stays as it is. Gives the names of those that cannot be used here."""
    known = set(connector.schemes.values_list("name", flat=True))
    unknown = []
    for name, entry in list(reader.security_schemes().items())[:50]:
        if name in known:
            continue
        values = _scheme(reader, reader.mapping(entry))
        if values is None:
            unknown.append(str(name)[:100])
        else:
            AuthScheme.objects.create(connector=connector, name=str(name)[:100], **values)
    return unknown


def _scheme(reader: "Reader", entry: dict[str, Any]) -> dict[str, Any] | None:
    match str(entry.get("type")).lower(), str(entry.get("scheme", "")).lower():
        case "apikey", _:
            place = entry.get("in")
            parameter = str(entry.get("name", ""))[:100]
            return {"type": _Type.API_KEY, "place": place, "parameter": parameter} if place in _Place.values else None
        case ("basic", _) | ("http", "basic"):
            return {"type": _Type.BASIC}
        case "http", "bearer":
            return {"type": _Type.BEARER}
        case "oauth2", _:
            return _oauth(reader, entry)
        case "openidconnect", _:
            return {"type": _Type.OAUTH_CODE, "scopes": "openid"}
    return None


def _oauth(reader: "Reader", entry: dict[str, Any]) -> dict[str, Any]:
    """The flow in which a person agrees is preferred; flows without a way for us take a token that somebody enters."""
    flows = {str(entry.get("flow")): entry} if reader.is_2 else reader.mapping(entry.get("flows"))
    for names, kind in (
        (("authorizationCode", "accessCode"), _Type.OAUTH_CODE),
        (("clientCredentials", "application"), _Type.OAUTH_CLIENT),
    ):
        for name in names:
            if flow := reader.mapping(flows.get(name)):
                return {
                    "type": kind,
                    "authorize_url": _address(flow.get("authorizationUrl")),
                    "token_url": _address(flow.get("tokenUrl")),
                    "scopes": " ".join(str(scope) for scope in reader.mapping(flow.get("scopes")))[:1_000],
                    "per_user": kind == _Type.OAUTH_CODE,
                }
    return {"type": _Type.BEARER}


def _address(value: Any) -> str:
    text = str(value or "")
    return text if text.startswith(("http://", "https://")) and len(text) <= 500 else ""
