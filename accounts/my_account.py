"""One's own account: profile, password, second factor, sign-ins, API keys."""

from typing import Any

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.internal.flows.sessions import end_other_sessions, end_sessions
from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts import services
from accounts.forms import KeyForm, ProfileForm, time_zones
from accounts.models import ApiKey, User
from accounts.sign_ins import browser_of

LISTED = 50


def _me(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - `login_required` has seen to it
    return request.user


def _page(request: HttpRequest, **more: Any) -> HttpResponse:
    user = _me(request)
    factors = {factor.type: factor for factor in Authenticator.objects.filter(user=user)}
    sessions = UserSession.objects.filter(user=user).order_by("-created_at")[:LISTED]
    context = {
        "profile": ProfileForm(instance=user),
        "time_zones": time_zones(),
        "app": factors.get(Authenticator.Type.TOTP),
        "codes": factors.get(Authenticator.Type.RECOVERY_CODES),
        "sessions": [{"row": row, "browser": browser_of(row.user_agent)} for row in sessions],
        "connection": SocialAccount.objects.filter(user=user).first(),
        "key_form": KeyForm(),
        "keys": ApiKey.objects.visible_to(user)[:LISTED],
        "now": timezone.now(),
        **more,
    }
    return render(request, "accounts/my_account.html", context)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """The page; POST saves the profile."""
    if request.method != "POST":
        return _page(request)
    user = User.objects.get(pk=_me(request).pk)  # the form writes on it even when it is refused
    form = ProfileForm(request.POST, instance=user)
    if not form.is_valid():
        return _page(request, profile=form)
    form.save()
    with translation.override(user.language or translation.get_language()):
        messages.success(request, _("Your profile is saved."))
    return redirect("account")


@login_required
@require_POST
def end_session(request: HttpRequest, session_id: int) -> HttpResponse:
    found = UserSession.objects.filter(user=_me(request), pk=session_id).first()
    if found is None:
        raise Http404
    end_sessions(request, [found])
    messages.success(request, _("That browser is signed out."))
    return redirect("account")


@login_required
@require_POST
def end_others(request: HttpRequest) -> HttpResponse:
    end_other_sessions(request, _me(request))
    messages.success(request, _("All other browsers are signed out."))
    return redirect("account")


@login_required
@never_cache
@require_POST
def create_key(request: HttpRequest) -> HttpResponse:
    """The answer shows the key, once: no message, session or log ever holds it."""
    form = KeyForm(request.POST)
    if not form.is_valid():
        return _page(request, key_form=form)
    data = form.cleaned_data
    key, text = services.create_api_key(
        _me(request), data["name"], form.expires_at(), scopes=data["scopes"], addresses=data["addresses"]
    )
    return render(request, "accounts/new_key.html", {"key": key, "text": text})


@login_required
@require_POST
def revoke_key(request: HttpRequest, key_id: int) -> HttpResponse:
    key = ApiKey.objects.visible_to(_me(request)).filter(pk=key_id).first()
    if key is None:
        raise Http404
    services.revoke_api_key(key)
    messages.success(request, _("The key “%(name)s” is revoked.") % {"name": key.name})
    return redirect("account")
