"""Sign-in by OpenID Connect: django-allauth's code flow with PKCE, and what it leaves to its users.

Beyond it: the configuration must be the configured issuer's own, ID tokens are verified with its keys, the nonce ties a
token to the browser that asked for it, user info must speak of the same person. An account is found by issuer and
subject, never by an address: linking needs a signed-in user.
"""

import hashlib
import logging
import secrets
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.internal.deferred import jwt
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib.auth.models import Group
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from requests import RequestException

from accounts import invitations
from accounts.models import User
from accounts.oidc_http import OutboundAdapter

log = logging.getLogger(__name__)

SIGNATURES = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class Refused(OAuth2Error):  # type: ignore[misc]
    """What the issuer sent is not believed. The message is for the log and holds nothing secret."""


def nonce_of(code_verifier: str) -> str:
    """The nonce of a sign-in. Only the browser's session knows the verifier, so only it can expect the nonce."""
    return hashlib.sha256(f"nonce {code_verifier}".encode()).hexdigest()


class OidcClient(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """One exchange with the issuer. What is wrong with its answers is `Refused`."""

    nonce = ""

    @property
    def openid_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().openid_config
        if str(config.get("issuer", "")).rstrip("/") != settings.OIDC_ISSUER:
            raise Refused("The configuration is of another issuer than OIDC_ISSUER.")
        return config

    def get_access_token_data(self, request: HttpRequest, app: Any, client: Any, pkce_code_verifier: Any = None) -> Any:
        self.nonce = nonce_of(pkce_code_verifier or "")
        return super().get_access_token_data(request, app, client, pkce_code_verifier)

    def complete_login(self, request: HttpRequest, app: Any, token: Any, **kwargs: Any) -> SocialLogin:
        try:
            claims = self._decode_id_token(app, kwargs["response"]["id_token"])
            info = self._fetch_user_info(token.token)
            if info["sub"] != claims["sub"]:
                raise Refused("User info and ID token speak of different people.")
            return self.get_provider().sociallogin_from_response(request, {**claims, **info})
        except (KeyError, TypeError, ValueError) as error:
            raise Refused(f"An answer of the issuer is incomplete ({type(error).__name__}).") from error

    def _decode_id_token(self, app: Any, id_token: str) -> dict[str, Any]:
        if jwt.get_unverified_header(id_token).get("alg") not in SIGNATURES:
            raise Refused("The ID token is not signed with a public key.")
        claims: dict[str, Any] = jwtkit.verify_and_decode(
            credential=id_token,
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.openid_config["issuer"],
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )
        if not secrets.compare_digest(str(claims.get("nonce", "")), self.nonce):
            raise Refused("The ID token was made for another sign-in.")
        if claims.get("azp", app.client_id) != app.client_id:
            raise Refused("The ID token was made for another client.")
        return claims


class OidcProvider(OpenIDConnectProvider):  # type: ignore[misc]
    package = "allauth.socialaccount.providers.openid_connect"
    oauth2_adapter_class = OidcClient

    def get_pkce_params(self) -> dict[str, str]:
        parameters: dict[str, str] = super().get_pkce_params()
        return {**parameters, "nonce": nonce_of(parameters["code_verifier"])}

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        """Scope and parameters are ours alone: none from the address."""
        return {**super().get_redirect_from_request_kwargs(request), "scope": None, "auth_params": None}

    def redirect(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """A page that leads on, instead of a redirect: `form-action` of our content policy forbids that one."""
        answer: HttpResponse = super().redirect(request, *args, **kwargs)
        if answer.status_code != 302:
            return answer
        return render(request, "accounts/leaving.html", {"address": answer["Location"], "name": self.name})

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        groups = data.get(settings.OIDC_GROUPS_CLAIM, [])
        groups = [groups] if isinstance(groups, str) else groups
        kept = {name: data[name] for name in ("sub", "name", "email") if isinstance(data.get(name), str)}
        return {**kept, "groups": [str(group) for group in groups] if isinstance(groups, list) else []}


def login(request: HttpRequest, provider_id: str) -> HttpResponse:
    return _view(OAuth2LoginView, request, provider_id)


def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    return _view(OAuth2CallbackView, request, provider_id)


def _view(kind: Any, request: HttpRequest, provider_id: str) -> HttpResponse:
    """The library's own views would talk to the issuer without what `OidcClient` checks."""
    client = OidcClient(request, provider_id)
    response: HttpResponse
    try:
        response = kind.adapter_view(client)(request)
    except SocialApp.DoesNotExist:
        raise Http404 from None
    except (OAuth2Error, RequestException, jwt.PyJWTError, KeyError) as error:
        response = render_authentication_error(request, client.get_provider(), exception=error)
    return response


class OidcAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Who gets an account, with which address and groups."""

    def get_requests_session(self) -> Any:
        session = super().get_requests_session()
        session.mount("https://", OutboundAdapter())
        session.mount("http://", OutboundAdapter())
        return session

    def on_authentication_error(self, request: HttpRequest, provider: Any, **details: Any) -> None:
        exception = details.get("exception")
        why = str(exception) if isinstance(exception, Refused) else type(exception).__name__
        log.warning("Nobody was signed in by %s: %s", provider, why)

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]) -> User:
        """Only a verified address becomes the account's: it is where passwords are reset to."""
        verified = {address.email for address in sociallogin.email_addresses if address.verified}
        user: User = super().populate_user(request, sociallogin, data)
        user.email = user.email if user.email in verified else ""
        sociallogin.email_addresses = []  # the account has the one address, which administrators change
        return user

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        if sociallogin.is_existing:
            self._follow_groups(sociallogin)
        elif sociallogin.state.get("process") != AuthProcess.CONNECT and not self._welcome(request, sociallogin):
            raise ImmediateHttpResponse(render(request, "accounts/not_connected.html", status=403))

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return self._welcome(request, sociallogin)

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        with invitations.redeeming(invitations.accepted(request)) as invitation:
            if invitation and invitation.email:
                sociallogin.user.email = invitation.email
            user: User = super().save_user(request, sociallogin, form)
            if invitation:
                invitations.used_by(invitation, user)
        invitations.accept(request, "")
        self._follow_groups(sociallogin)
        return user

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: Any) -> str:
        return "/account/"

    def _welcome(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Somebody new, whom the issuer may bring or who holds an invitation, and whose address is nobody else's."""
        token, email = invitations.accepted(request), sociallogin.user.email
        if token and not invitations.is_open(token):
            invitations.accept(request, token := "")
        taken = bool(email) and User.objects.filter(email__iexact=email).exists()
        return bool(token or settings.OIDC_SIGNUP) and not taken

    def _follow_groups(self, sociallogin: SocialLogin) -> None:
        """Mapped groups are the issuer's to give and take; all others stay as administrators set them."""
        if not settings.OIDC_GROUP_MAP:
            return
        theirs = set(sociallogin.account.extra_data.get("groups", []))
        mapped = Group.objects.filter(name__in=settings.OIDC_GROUP_MAP.values())
        given = {ours for name, ours in settings.OIDC_GROUP_MAP.items() if name in theirs}
        user = sociallogin.user
        user.groups.remove(*[group for group in mapped if group.name not in given])
        user.groups.add(*[group for group in mapped if group.name in given])
