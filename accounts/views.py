"""Pages of sign-in that django-allauth does not bring."""

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts import services
from accounts.errors import SetupLinkInvalid
from accounts.forms import SetupForm


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def setup(request: HttpRequest, token: str) -> HttpResponse:
    """The first administrator's page. Looking at it does not use the link up; only an account does.

    Its address is a secret: the site's referrer policy keeps it within the site. A stricter one would hide the form's
    origin as well, which the CSRF check needs.
    """
    if not services.is_setup_link_open(token):
        return _gone(request)
    form = SetupForm(request.POST or None)
    if not form.is_valid():
        return render(request, "accounts/setup.html", {"form": form})
    data = form.cleaned_data
    try:
        user = services.redeem_setup_link(token, data["username"], data["password1"], data["email"])
    except SetupLinkInvalid:
        return _gone(request)
    login(request, user)
    return redirect("/")


def _gone(request: HttpRequest) -> HttpResponse:
    """One answer for used, superseded and invented tokens: it tells a guesser nothing."""
    return render(request, "accounts/setup.html", {"form": None}, status=404)
