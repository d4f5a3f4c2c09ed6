"""Pages that make an account: the first administrator's, and those of the invited."""

from allauth.account.utils import perform_login
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts import invitations, services
from accounts.errors import InvitationInvalid, SetupLinkInvalid
from accounts.forms import InvitationForm, SetupForm
from accounts.models import User


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def setup(request: HttpRequest, token: str) -> HttpResponse:
    """The first administrator's page. Looking at it does not use the link up; only an account does.

    Its address is a secret: the site's referrer policy keeps it within the site. A stricter one would hide the form's
    origin as well, which the CSRF check needs.
    """
    if not services.is_setup_link_open(token):
        return _gone(request, "accounts/setup.html")
    form = SetupForm(request.POST or None)
    if not form.is_valid():
        return render(request, "accounts/setup.html", {"form": form})
    data = form.cleaned_data
    try:
        user = services.redeem_setup_link(token, data["username"], data["password1"], data["email"])
    except SetupLinkInvalid:
        return _gone(request, "accounts/setup.html")
    return _enter(request, user)


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Makes the invited person's account with a password, or remembers the invitation for a sign-in elsewhere."""
    found = invitations.find(token)
    if found is None:
        return _gone(request, "accounts/invitation.html")
    invitations.accept(request, token)
    form = InvitationForm(request.POST or None, email=found.email)
    context = {"form": form, "invitation": found}
    if not form.is_valid():
        return render(request, "accounts/invitation.html", context)
    data = form.cleaned_data
    try:
        user = invitations.redeem(token, data["username"], data["password1"], data.get("email", ""))
    except InvitationInvalid:
        return _gone(request, "accounts/invitation.html")
    except IntegrityError:  # somebody took the name between the check and now
        form.add_error("username", _("This user name is taken."))
        return render(request, "accounts/invitation.html", context)
    return _enter(request, user)


def _enter(request: HttpRequest, user: User) -> HttpResponse:
    response: HttpResponse = perform_login(request, user, redirect_url="/")
    return response


def _gone(request: HttpRequest, page: str) -> HttpResponse:
    """One answer for used, superseded and invented tokens: it tells a guesser nothing."""
    return render(request, page, {"form": None}, status=404)
