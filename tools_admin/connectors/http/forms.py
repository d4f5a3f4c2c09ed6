import re
from typing import Any

import jmespath
from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from tools_admin.connector_forms import ConnectorForm
from tools_admin.connectors.http.template import names_in
from tools_admin.forms import OptionalJSONField, ReadableJSONField
from tools_admin.models import Tool
from tools_admin.validators import validate_endpoint, validate_object, validate_schema

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]
_SECRET_NAME = re.compile(r"auth|key|token|secret|password|cookie", re.IGNORECASE)


def validate_texts_by_name(value: Any) -> None:
    validate_object(value)
    if not all(isinstance(text, str) for text in value.values()):
        raise ValidationError(_('Write names and texts, such as {"status": "{status}"}.'))


def validate_plain_headers(value: Any) -> None:
    validate_texts_by_name(value)
    if found := [name for name in value if _SECRET_NAME.search(name)]:
        raise ValidationError(_("%s: secrets are entered as a sign-in, where nobody can read them.") % found[0])


def _json(label: Any, help_text: Any, *validators: Any) -> ReadableJSONField:
    return ReadableJSONField(
        label=label,
        required=False,
        initial=dict,
        validators=list(validators),
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text=help_text,
    )


class HttpForm(ConnectorForm):
    base_url = forms.CharField(
        label=_("Address"),
        max_length=500,
        validators=[validate_endpoint],
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "https://api.example.org/v1"}),
        help_text=_("Where the service is; the paths of actions are added to it."),
    )
    headers = _json(
        _("Headers"), _('Sent with each request, such as {"Accept": "application/json"}.'), validate_plain_headers
    )

    def read_settings(self) -> dict[str, Any]:
        return {"base_url": self.cleaned_data["base_url"], "headers": self.cleaned_data.get("headers") or {}}


class ActionForm(forms.ModelForm):  # type: ignore[type-arg]
    """A hand-made tool. `{name}` in path, query, headers and body stands for an argument."""

    method = forms.ChoiceField(
        label=_("Method"), choices=[(name, name) for name in METHODS], widget=UnfoldAdminSelectWidget()
    )
    path = forms.CharField(
        label=_("Path"),
        max_length=1_000,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "/orders/{order_id}"}),
        help_text=_("{name} stands for an argument, here and below."),
    )
    query = _json(
        _("Query"), _('Such as {"status": "{status}"}. What is not given is left out.'), validate_texts_by_name
    )
    headers = _json(_("Headers"), _("Of this action alone."), validate_plain_headers)
    body = OptionalJSONField(
        label=_("Body"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
        help_text=_('JSON, such as {"items": "{items}"}: a text that is only {items} becomes the argument itself.'),
    )
    select = forms.CharField(
        label=_("Selection"),
        max_length=1_000,
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "orders[].{id: id, total: total}"}),
        help_text=_("JMESPath: what of the answer is given to the model. Empty means all of it."),
    )

    parts = ("method", "path", "query", "headers", "body", "select")

    class Meta:
        model = Tool
        fields = ("name", "description", "parameters", "effect_class")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["parameters"].required = False
        self.fields["parameters"].help_text = _("JSON Schema. Empty: the names used above, each a text.")
        self.fields["parameters"].validators.append(validate_schema)
        for name in self.parts:
            if name in self.instance.definition:
                self.initial[name] = self.instance.definition[name]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            raise ValidationError(_("Letters, digits and _, a letter first."))
        return name

    def clean_path(self) -> str:
        path: str = self.cleaned_data["path"]
        if "?" in path or "#" in path or {".", ".."} & set(path.split("/")):
            raise ValidationError(_("Only a path below the connector's address; the query has its own field."))
        return path

    def clean_select(self) -> str:
        text: str = self.cleaned_data["select"]
        try:
            if text:
                jmespath.compile(text)
        except jmespath.exceptions.JMESPathError as error:
            raise ValidationError(_("This is no JMESPath: %s") % error) from None
        return text

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        mentioned = list(dict.fromkeys(names_in([cleaned.get(name) for name in self.parts if name != "select"])))
        needed = list(dict.fromkeys(names_in(cleaned.get("path", ""))))
        schema = cleaned.get("parameters")
        if not schema:
            cleaned["parameters"] = {
                "type": "object",
                "required": needed,
                "properties": {name: {"type": "string"} for name in mentioned},
                "additionalProperties": False,
            }
        elif isinstance(schema, dict) and (unknown := [n for n in mentioned if n not in schema.get("properties", {})]):
            self.add_error("parameters", _("{%s} is used above and not described here.") % unknown[0])
        return cleaned

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if not self.errors:
            self.instance.key = self.instance.key or self.cleaned_data["name"]
            self.instance.definition = {
                name: self.cleaned_data[name]
                for name in self.parts
                if self.cleaned_data.get(name) not in (None, "", {})
            }
