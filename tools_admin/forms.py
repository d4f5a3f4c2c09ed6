"""Forms of the admin: write-only keys, readable JSON, one default."""

import json
from typing import Any

from django import forms
from django.forms.fields import InvalidJSONInput
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldBooleanSwitchWidget

from tools_admin.models import Agent, LanguageModel, Provider


class ReadableJSONField(forms.JSONField):
    """JSON on several lines, umlauts as umlauts. What is empty becomes the model field's own kind of empty."""

    def clean(self, value: Any) -> Any:
        cleaned = super().clean(value)
        return self.initial() if cleaned in self.empty_values and callable(self.initial) else cleaned

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, InvalidJSONInput):
            return value
        text = json.dumps(value, indent=2, ensure_ascii=False, cls=self.encoder)
        return text.encode(errors="backslashreplace").decode()  # halves of surrogate pairs fit in no page


class DefaultForm(forms.ModelForm):  # type: ignore[type-arg]
    """Leaves "only one default" to `save_as_default`, which moves the mark instead of refusing."""

    def _get_validation_exclusions(self) -> set[str]:
        return {*super()._get_validation_exclusions(), "is_default"}  # type: ignore[misc]


class LanguageModelForm(DefaultForm):
    class Meta:
        model = LanguageModel
        fields = "__all__"  # noqa: DJ007 (the admin names the fields)


class AgentForm(DefaultForm):
    class Meta:
        model = Agent
        fields = "__all__"  # noqa: DJ007 (the admin names the fields)


class ProviderForm(forms.ModelForm):  # type: ignore[type-arg]
    """A key goes in and never comes out: its field is always empty, and an empty one changes nothing.

    A key belongs to the address it was entered for. With another scheme, host or port it is dropped
    (`key_left_behind`), so that whoever may change an address cannot send the key somewhere else.
    """

    new_api_key = forms.CharField(
        label=_("New key"),
        required=False,
        max_length=4_000,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text=_("Write-only: it is stored encrypted and never shown. Empty keeps the present one."),
    )
    clear_api_key = forms.BooleanField(label=_("Remove the key"), required=False, widget=UnfoldBooleanSwitchWidget())

    class Meta:
        model = Provider
        fields = ("name", "base_url", "enabled", "timeout")

    key_left_behind = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._origin_before = self.instance.origin if self.instance.pk else None

    def save(self, commit: bool = True) -> Any:
        provider: Provider = self.instance
        moved = self._origin_before is not None and provider.origin != self._origin_before
        if self.cleaned_data.get("new_api_key"):
            provider.api_key = SecretStr(self.cleaned_data["new_api_key"])
        elif provider.api_key.get_secret_value() and (moved or self.cleaned_data.get("clear_api_key")):
            provider.api_key = SecretStr("")
            self.key_left_behind = moved
        return super().save(commit)
