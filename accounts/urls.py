"""Addresses of sign-in and of one's account. Of django-allauth's pages only those that a closed installation needs."""

from collections.abc import Iterable
from typing import Any

from allauth.account import urls as account_urls
from allauth.mfa import urls as mfa_urls
from allauth.socialaccount import urls as social_urls
from allauth.socialaccount.providers import registry
from django.contrib.auth.decorators import login_required
from django.urls import include, path
from django.views.generic import RedirectView

from accounts import my_account, oidc, views

registry.load()  # here, and not at each start: see SocialAccountConfig

# Not among them: adding addresses and confirming them. One's address decides where passwords are reset to, so it is
# an administrator's to change.
ACCOUNT_PAGES = {
    "account_login",
    "account_logout",
    "account_inactive",
    "account_signup",  # says that it is closed; the sign-in page needs its name
    "account_change_password",
    "account_reauthenticate",
    "account_reset_password",
    "account_reset_password_done",
    "account_reset_password_from_key",
    "account_reset_password_from_key_done",
}
SOCIAL_PAGES = {"socialaccount_login_cancelled", "socialaccount_login_error"}


def _only(patterns: Iterable[Any], names: set[str]) -> Any:
    return include([page for page in patterns if page.name in names])


_TO_ACCOUNT = login_required(RedirectView.as_view(pattern_name="account"))

urlpatterns = [
    path("setup/<str:token>/", views.setup, name="setup"),
    path("invitation/<str:token>/", views.invitation, name="invitation"),
    path("account/", my_account.account, name="account"),
    path("account/sign-ins/<int:session_id>/end/", my_account.end_session, name="account_end_session"),
    path("account/sign-ins/end-others/", my_account.end_others, name="account_end_others"),
    path("account/keys/", my_account.create_key, name="account_create_key"),
    path("account/keys/<int:key_id>/revoke/", my_account.revoke_key, name="account_revoke_key"),
    path("account/second-factor/", _TO_ACCOUNT, name="mfa_index"),
    path("account/second-factor/", include(mfa_urls.urlpatterns)),
    path("account/oidc/<str:provider_id>/login/", oidc.login, name="openid_connect_login"),
    path("account/oidc/<str:provider_id>/login/callback/", oidc.callback, name="openid_connect_callback"),
    path("account/sso/", _only(social_urls.urlpatterns, SOCIAL_PAGES)),
    path("account/connections/", _TO_ACCOUNT, name="socialaccount_connections"),
    path("account/", _only(account_urls.urlpatterns, ACCOUNT_PAGES)),
]
