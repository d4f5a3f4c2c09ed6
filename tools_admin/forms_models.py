"""Forms for providers, models and routes: write-only keys, presets, prices as people write them."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldBooleanSwitchWidget

from accounts.money_field import MoneyField
from agentapp.encryption import UndecryptableSecret
from tools_admin.forms import DefaultForm
from tools_admin.models import LanguageModel, Provider
from tools_admin.presets import PRESETS


class LanguageModelForm(DefaultForm):
    input_price = MoneyField(
        required=False, label=_("Input"), help_text=_("For a million tokens, in your currency, such as 2.50.")
    )
    cached_price = MoneyField(required=False, label=_("Cached input"), help_text=_("Empty means as input."))
    output_price = MoneyField(required=False, label=_("Output"), help_text=_("For a million tokens."))
    reasoning_price = MoneyField(required=False, label=_("Reasoning"), help_text=_("Empty means as output."))

    class Meta:
        model = LanguageModel
        fields = "__all__"

    def clean_input_price(self) -> int:
        return self.cleaned_data["input_price"] or 0

    def clean_output_price(self) -> int:
        return self.cleaned_data["output_price"] or 0


class ProviderForm(forms.ModelForm):  # type: ignore[type-arg]
    """A key goes in and never comes out: its field is always empty, and an empty one changes nothing.

    A key belongs to the address it was entered for. With another scheme, host or port it is dropped
    (`key_left_behind`), so that whoever may change an address cannot send the key somewhere else.

    What the chosen kind of endpoint says already, its address and a name, may be left empty.
    """

    new_api_key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=4_000,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text=_("Write-only: it is stored encrypted and never shown. Empty keeps the present one."),
    )
    clear_api_key = forms.BooleanField(
        label=_("Remove the key"),
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
        help_text=_("The endpoint is then called without one."),
    )

    class Meta:
        model = Provider
        fields = (
            "preset",
            "name",
            "base_url",
            "enabled",
            "timeout",
            "max_concurrent",
            "requests_per_minute",
            "extra_headers",
            "extra_body",
        )

    key_left_behind = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._origin_before = self.instance.origin if self.instance.pk else None
        if "new_api_key" in self.fields and not self.instance.pk:
            self.fields["new_api_key"].help_text = _("It is stored encrypted and never shown again.")
        if "name" in self.fields:
            self.fields["name"].help_text = _("Empty takes that of the kind.")
        for name in ("name", "base_url"):
            if name in self.fields:
                self.fields[name].required = False
        if "base_url" in self.fields:
            self.fields["base_url"].help_text = _(
                "Empty takes that of the chosen kind; such as https://api.example.org/v1."
            )

    def clean_base_url(self) -> str:
        preset = PRESETS.get(self.cleaned_data.get("preset", ""), PRESETS["other"])
        address: str = self.cleaned_data.get("base_url") or preset.base_url
        if not address:
            raise forms.ValidationError(_("Enter the address of the endpoint, such as https://api.example.org/v1."))
        if "YOUR-" in address:
            raise forms.ValidationError(preset.hint)
        return address

    def clean_name(self) -> str:
        name: str = self.cleaned_data.get("name") or ""
        if name:
            return name
        label = str(PRESETS.get(self.cleaned_data.get("preset", ""), PRESETS["other"]).label)[:90]
        others = Provider.objects.exclude(pk=self.instance.pk)
        candidates = (label if number == 1 else f"{label} {number}" for number in range(1, 1_000))
        return next(candidate for candidate in candidates if not others.filter(name=candidate).exists())

    def save(self, commit: bool = True) -> Any:
        provider: Provider = self.instance
        moved = self._origin_before is not None and provider.origin != self._origin_before
        if self.cleaned_data.get("new_api_key"):
            provider.api_key = SecretStr(self.cleaned_data["new_api_key"].strip())
        elif has_key(provider) and (moved or self.cleaned_data.get("clear_api_key")):
            provider.api_key = SecretStr("")
            self.key_left_behind = moved
        return super().save(commit)


def has_key(provider: Provider) -> bool:
    try:
        return bool(provider.api_key.get_secret_value())
    except UndecryptableSecret:
        return True
