"""“My connections”: the accounts that a person lets agents use on their behalf."""

import secrets
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from accounts.models import User
from tools_admin import credentials
from tools_admin.connector_forms import secret_of
from tools_admin.models import AuthScheme

_Type = AuthScheme.Type


class SecretForm(forms.Form):
    """What a person enters for a scheme without OAuth."""

    username = forms.CharField(label=gettext_lazy("User name"), max_length=300)
    secret = forms.CharField(max_length=8_000, widget=forms.PasswordInput(attrs={"autocomplete": "off"}), strip=True)

    def __init__(self, scheme: AuthScheme, data: Any = None) -> None:
        super().__init__(data, prefix=f"s{scheme.pk}")
        labels = {_Type.BASIC: _("Password"), _Type.API_KEY: _("Key")}
        self.fields["secret"].label = labels.get(_Type(scheme.type), _("Token"))
        if scheme.type != _Type.BASIC:
            del self.fields["username"]


def _me(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - `login_required` has seen to it
    return request.user


def _scheme(request: HttpRequest, scheme_id: int) -> AuthScheme:
    found = AuthScheme.objects.visible_to(_me(request)).select_related("connector").filter(pk=scheme_id).first()
    if found is None:
        raise Http404
    return found


def _page(request: HttpRequest, form: SecretForm | None = None, of: AuthScheme | None = None) -> HttpResponse:
    """Two queries for the list, however long."""
    user = _me(request)
    schemes = AuthScheme.objects.visible_to(user).select_related("connector").order_by("connector__name", "name")
    own = {credential.scheme_id: credential for credential in user.connections.all()}
    rows = []
    for scheme in schemes:
        credential = own.get(scheme.pk)
        rows.append(
            {
                "scheme": scheme,
                "connected": credential is not None and credential.binding == scheme.binding and _is_whole(credential),
                "since": credential.updated_at if credential else None,
                "oauth": scheme.type == _Type.OAUTH_CODE,
                "form": form if form and of == scheme else SecretForm(scheme),
                "open": form is not None and of == scheme,
            }
        )
    return render(request, "tools_admin/connections.html", {"rows": rows})


def _is_whole(credential: Any) -> bool:
    return bool(credentials.read(credential))


@login_required
@never_cache
@require_GET
def connections(request: HttpRequest) -> HttpResponse:
    return _page(request)


@login_required
@sensitive_post_parameters()
@require_POST
def connect(request: HttpRequest, scheme_id: int) -> HttpResponse:
    """Keeps what was entered, or leads to the place where the person agrees."""
    scheme = _scheme(request, scheme_id)
    if scheme.type == _Type.OAUTH_CODE:
        return _leave(request, scheme)
    form = SecretForm(scheme, request.POST)
    if not form.is_valid():
        return _page(request, form, scheme)
    entered = form.cleaned_data
    credentials.store(scheme, _me(request), secret_of(scheme, entered["secret"], entered.get("username", "")))
    messages.success(request, _("%s is connected.") % scheme.connector)
    return redirect("connections")


@login_required
@require_POST
def disconnect(request: HttpRequest, scheme_id: int) -> HttpResponse:
    scheme = _scheme(request, scheme_id)
    scheme.credentials.filter(user=_me(request)).delete()
    messages.success(request, _("%s is disconnected. What it still accepts, you end there.") % scheme.connector)
    return redirect("connections")


def _leave(request: HttpRequest, scheme: AuthScheme) -> HttpResponse:
    """A page that leads on, instead of a redirect: `form-action` of our content policy forbids that one."""
    from tools_admin.oauth import authorization_url, new_verifier

    if not (scheme.authorize_url and scheme.token_url and scheme.client_id):
        messages.error(request, _("%s is not set up completely; an administrator does that.") % scheme.connector)
        return redirect("connections")
    state, verifier = secrets.token_urlsafe(32), new_verifier()
    request.session[_place(scheme)] = {"state": state, "verifier": verifier, "binding": scheme.binding}
    address = authorization_url(scheme, redirect_uri(request, scheme), state, verifier)
    return render(request, "accounts/leaving.html", {"address": address, "name": scheme.connector.name})


@login_required
@never_cache
@require_GET
def callback(request: HttpRequest, scheme_id: int) -> HttpResponse:
    """Back from the place where the person agreed. The state is this browser's, used once, and for this scheme."""
    from tools_admin.connectors.base import ConnectorError, ToolError
    from tools_admin.oauth import comes_from, exchange

    scheme = _scheme(request, scheme_id)
    begun = request.session.pop(_place(scheme), None)
    given = request.GET.get("state", "").encode(errors="replace")
    if not begun or not secrets.compare_digest(begun["state"].encode(), given) or begun["binding"] != scheme.binding:
        messages.error(request, _("This connection was not begun here, or too long ago. Begin it anew."))
        return redirect("connections")
    if not comes_from(scheme, request.GET.get("iss")):
        messages.error(request, _("%s was not connected: the answer came from another server.") % scheme.connector)
        return redirect("connections")
    code = request.GET.get("code", "")
    if request.GET.get("error") or not code:
        messages.error(request, _("%s was not connected: the sign-in there was refused.") % scheme.connector)
        return redirect("connections")
    try:
        work = async_to_sync(exchange)
        secret = work(scheme, scheme.connector, code, redirect_uri(request, scheme), begun["verifier"])
    except (ConnectorError, ToolError) as error:
        messages.error(request, _("%(name)s was not connected: %(why)s") % {"name": scheme.connector, "why": error})
        return redirect("connections")
    credentials.store(scheme, _me(request), secret)
    messages.success(request, _("%s is connected.") % scheme.connector)
    return redirect("connections")


def _place(scheme: AuthScheme) -> str:
    return f"connecting-{scheme.pk}"


def redirect_uri(request: HttpRequest, scheme: AuthScheme) -> str:
    """One for each scheme, so that an answer of one server cannot pass for another's."""
    path = reverse("connection_callback", args=[scheme.pk])
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)
