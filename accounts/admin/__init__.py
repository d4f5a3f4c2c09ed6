"""People in the admin: users, groups, invitations and API keys.

Rights cannot be lifted through it: nobody hands out what they do not have, or touches whoever has more.
"""

from importlib import import_module

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.models import Group

# The libraries' tables have their pages in "My account", or none. Their own pages are registered first, whoever
# imports this module.
for _app in ("django.contrib.auth", "allauth.account", "allauth.mfa", "allauth.socialaccount", "allauth.usersessions"):
    import_module(f"{_app}.admin")
for _model in (EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken, UserSession, Group):
    if admin.site.is_registered(_model):
        admin.site.unregister(_model)

from accounts.admin import budgets, groups, invitations, keys, users  # noqa: E402

__all__ = ["budgets", "groups", "invitations", "keys", "users"]
