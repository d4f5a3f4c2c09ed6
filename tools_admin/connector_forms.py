"""Forms of connectors and their sign-ins. Secrets go in and never come out."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from tools_admin import credentials
from tools_admin.models import AuthScheme, Connector


class ConnectorForm(forms.ModelForm):  # type: ignore[type-arg]
    """What all kinds share. A kind adds its own fields and says in `read_settings` how they become settings."""

    class Meta:
        model = Connector
        fields = ("name", "prefix", "enabled", "timeout", "inner")

    shared = ("name", "prefix", "enabled", "timeout")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.own_fields():
            if name in self.instance.settings:
                self.initial[name] = self.instance.settings[name]

    @classmethod
    def own_fields(cls) -> list[str]:
        """The kind's fields, in their order."""
        return list(cls.declared_fields)

    def read_settings(self) -> dict[str, Any]:
        """The row's `settings`, from cleaned fields."""
        raise NotImplementedError

    def after_save(self) -> list[Any]:
        """What else is kept, once the connector is saved; gives sentences that the admin should read."""
        return []

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if not self.errors:
            self.instance.settings = self.read_settings()


class AuthSchemeForm(forms.ModelForm):  # type: ignore[type-arg]
    """A way to sign in, with its shared secret. What is entered belongs to the addresses that it was entered for."""

    username = forms.CharField(
        label=_("User name"),
        required=False,
        max_length=300,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
    )
    new_secret = forms.CharField(
        label=_("New secret"),
        required=False,
        max_length=8_000,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text=_(
            "Token, key, password or client secret. Write-only: stored encrypted and never shown. Empty keeps it."
        ),
    )
    clear_secret = forms.BooleanField(label=_("Remove the secret"), required=False, widget=UnfoldBooleanSwitchWidget())

    class Meta:
        model = AuthScheme
        fields = (
            "name",
            "type",
            "place",
            "parameter",
            "authorize_url",
            "token_url",
            "client_id",
            "scopes",
            "per_user",
            "shared_fallback",
        )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        kind, flow = str(cleaned.get("type", "")), AuthScheme.Type
        needed: tuple[str, ...] = (
            {
                flow.OAUTH_CODE: ("authorize_url", "token_url", "client_id"),
                flow.OAUTH_CLIENT: ("token_url", "client_id"),
                flow.API_KEY: ("parameter",),
            }.get(flow(kind), ())
            if kind
            else ()
        )
        for name in needed:
            if not cleaned.get(name):
                self.add_error(name, _("This way to sign in needs it."))
        if kind == flow.BASIC and cleaned.get("new_secret") and not cleaned.get("username"):
            self.add_error("username", _("Enter it together with the password."))
        if kind == flow.OAUTH_CLIENT and cleaned.get("per_user"):
            self.add_error("per_user", _("Client credentials are the installation's, not a person's."))
        return cleaned

    def has_changed(self) -> bool:
        return bool(super().has_changed() or self.data.get(self.add_prefix("new_secret")))

    def store_secret(self) -> None:
        """After the scheme and its connector are saved."""
        scheme, entered = self.instance, self.cleaned_data.get("new_secret", "")
        if entered:
            credentials.store(scheme, None, secret_of(scheme, entered, self.cleaned_data.get("username", "")))
        elif self.cleaned_data.get("clear_secret"):
            scheme.credentials.filter(user=None).delete()


def secret_of(scheme: AuthScheme, entered: str, username: str = "") -> credentials.Secret:
    """What is stored for something that a person typed."""
    if scheme.type == AuthScheme.Type.BASIC:
        return {"username": username, "password": entered}
    if scheme.type in (AuthScheme.Type.OAUTH_CODE, AuthScheme.Type.OAUTH_CLIENT):
        return {"client_secret": entered}
    return {"token": entered}
