"""Forms of the admin: readable JSON, one default; those of models are in `forms_models.py`."""

import json
from typing import Any

from django import forms
from django.forms.fields import InvalidJSONInput
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextareaWidget

from tools_admin.models import Agent


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


class OptionalJSONField(ReadableJSONField):
    """Empty where nothing is given, instead of "null"."""

    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else super().prepare_value(value)


class DefaultForm(forms.ModelForm):  # type: ignore[type-arg]
    """Leaves "only one default" to `save_as_default`, which moves the mark instead of refusing."""

    def _get_validation_exclusions(self) -> set[str]:
        return {*super()._get_validation_exclusions(), "is_default"}  # type: ignore[misc]


class LinesField(forms.CharField):
    """A list of texts, one on each line."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 6})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in (super().to_python(value) or "").splitlines() if line.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool((initial or []) != self.to_python(data))


class AgentForm(DefaultForm):
    starters = LinesField(
        label=_("Starter questions"),
        required=False,
        help_text=_("Offered on an empty page: one on each line, of which six are shown."),
    )

    class Meta:
        model = Agent
        fields = "__all__"  # noqa: DJ007 (the admin names the fields)
