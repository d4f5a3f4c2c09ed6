"""Addresses of sign-in. Of django-allauth's pages only those that a closed installation needs."""

from allauth.account import urls as allauth_urls
from django.urls import include, path

from accounts import views

# Not among them: adding addresses and confirming them. One's address decides where passwords are reset to, so it is
# an administrator's to change.
ACCOUNT_PAGES = {
    "account_login",
    "account_logout",
    "account_inactive",
    "account_signup",  # says that it is closed; the sign-in page needs its name
    "account_change_password",
    "account_reset_password",
    "account_reset_password_done",
    "account_reset_password_from_key",
    "account_reset_password_from_key_done",
}

urlpatterns = [
    path("setup/<str:token>/", views.setup, name="setup"),
    path("account/", include([page for page in allauth_urls.urlpatterns if page.name in ACCOUNT_PAGES])),
]
