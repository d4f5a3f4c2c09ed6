"""Forms of the sign-in pages and of one's own account."""

import zoneinfo
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import BaseUserCreationForm
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import ApiKey, User
from accounts.scopes import READING, Scope


class SetupForm(BaseUserCreationForm):  # type: ignore[type-arg]
    """Validates the first administrator's name, address and password; the service creates the account."""

    class Meta:
        model = User
        fields = ("username", "email")


class InvitationForm(BaseUserCreationForm):  # type: ignore[type-arg]
    """The invited person's name and password. The address is the invitation's, if it has one."""

    class Meta:
        model = User
        fields = ("username", "email")

    def __init__(self, *args: Any, email: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if email:
            del self.fields["email"]


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = ("first_name", "last_name", "language", "time_zone")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["first_name"].widget.attrs["autocomplete"] = "given-name"
        self.fields["last_name"].widget.attrs["autocomplete"] = "family-name"
        language = self.fields["language"]
        assert isinstance(language, forms.TypedChoiceField)  # noqa: S101
        language.choices = [("", _("As the browser asks")), *settings.LANGUAGES]
        self.fields["time_zone"].widget.attrs["list"] = "time-zones"
        self.fields["time_zone"].widget.attrs["placeholder"] = timezone.get_default_timezone_name()


def time_zones() -> list[str]:
    """Places, as people look for them: no abbreviations, no `Etc/GMT+3`."""
    return sorted(name for name in zoneinfo.available_timezones() if "/" in name and not name.startswith("Etc/"))


class ScopesField(forms.MultipleChoiceField):
    """What a key allows, to tick."""

    def __init__(self, widget: Any = forms.CheckboxSelectMultiple) -> None:
        super().__init__(
            # A function: the labels speak the language of each reader.
            choices=lambda: [(scope.value, f"{scope.value}: {scope.label}") for scope in Scope],
            initial=READING,
            widget=widget,
            label=_("It may"),
            help_text=_("Whoever has the key may do this, and never more than its owner."),
            error_messages={"required": _("Tick at least one.")},
        )


class KeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """A new key of one's own; `expires_at()` is None for one that lasts."""

    scopes = ScopesField()

    days = forms.TypedChoiceField(
        label=_("Valid for"),
        coerce=int,
        choices=[(30, _("30 days")), (90, _("90 days")), (365, _("one year")), (0, _("until revoked"))],
        initial=90,
    )

    class Meta:
        model = ApiKey
        fields = ("name", "scopes", "addresses")

    def expires_at(self) -> Any:
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None
