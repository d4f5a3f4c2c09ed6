import json
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from tools_admin.connector_forms import ConnectorForm
from tools_admin.connector_models import origin_of
from tools_admin.connectors.openapi.schemes import add_schemes
from tools_admin.models import Document
from tools_admin.validators import validate_endpoint


class OpenApiForm(ConnectorForm):
    """The document comes pasted, as a file or from an address; without any of them it stays as it is."""

    upload = forms.FileField(
        label=_("OpenAPI file"),
        required=False,
        widget=UnfoldAdminFileFieldWidget(),
        help_text=_("OpenAPI 2.0, 3.0 or 3.1, JSON or YAML, at most 10 MB."),
    )
    pasted = forms.CharField(
        label=_("or its text"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"}),
    )
    source = forms.CharField(
        label=_("or its address"),
        max_length=1_000,
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "https://api.example.org/openapi.json"}),
    )
    again = forms.BooleanField(
        label=_("Read it from its address again"), required=False, widget=UnfoldBooleanSwitchWidget()
    )
    base_url = forms.CharField(
        label=_("Address of the service"),
        max_length=500,
        required=False,
        validators=[validate_endpoint],
        widget=UnfoldAdminTextInputWidget(),
        help_text=_("Empty means: what the document says."),
    )

    text = ""  # of a new document

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        self.text = self._new_text(cleaned)
        if not self.text:
            if not cleaned.get("base_url"):
                if self.instance.pk:
                    cleaned["base_url"] = self.instance.settings.get("base_url", "")
                else:
                    raise ValidationError(_("Give the document: as a file, as text, or its address."))
            elif not self.instance.pk:
                raise ValidationError(_("Give the document: as a file, as text, or its address."))
            return cleaned
        reader = self._reader()
        if not cleaned.get("base_url"):
            cleaned["base_url"] = reader.base_url(cleaned.get("source", ""))
        try:
            validate_endpoint(cleaned["base_url"])
        except ValidationError:
            text = _("The document does not say where the service is; write its address.")
            self.add_error("base_url", text)
        return cleaned

    def _new_text(self, cleaned: dict[str, Any]) -> str:
        from tools_admin.connectors.openapi.document import MAX_BYTES

        if upload := cleaned.get("upload"):
            if upload.size > MAX_BYTES:
                raise ValidationError(_("The file is larger than 10 MB."))
            return str(upload.read().decode("utf-8-sig", errors="replace"))
        if cleaned.get("pasted", "").strip():
            return str(cleaned["pasted"])
        source = cleaned.get("source", "")
        if source and (cleaned.get("again") or source != self.instance.settings.get("source", "")):
            return self._fetched(source, bool(cleaned.get("inner")))
        return ""

    def _fetched(self, url: str, inner: bool) -> str:
        from django.conf import settings

        from agentapp.outbound import OutboundError, Policy, fetch

        policy = Policy(settings.OUTBOUND_ALLOWED_HOSTS)
        try:
            answer = async_to_sync(fetch)("GET", url, policy=policy.allowing(url) if inner else policy)
        except OutboundError as error:
            raise ValidationError({"source": str(error)}) from None
        if answer.status_code != 200:
            raise ValidationError({"source": _("The server answers: HTTP %d.") % answer.status_code})
        return answer.text

    def _reader(self) -> Any:
        from tools_admin.connectors.base import ConnectorError
        from tools_admin.connectors.openapi.document import read
        from tools_admin.connectors.openapi.operations import Reader

        try:
            return Reader(read(self.text))
        except ConnectorError as error:
            raise ValidationError(str(error)) from None

    def read_settings(self) -> dict[str, Any]:
        return {"base_url": self.cleaned_data["base_url"], "source": self.cleaned_data.get("source", "")}

    def after_save(self) -> list[Any]:
        if not self.text:
            return []
        reader = self._reader()
        # As JSON it is read much faster than as YAML, and escapes hold what a database's text cannot.
        content = json.dumps(reader.document)
        Document.objects.update_or_create(connector=self.instance, defaults={"content": content})
        unknown = add_schemes(self.instance, reader)
        notes: list[Any] = []
        if unknown:
            notes.append(_("These ways to sign in cannot be used here: %s") % ", ".join(unknown))
        if origin_of(self.instance.settings["base_url"]).startswith("http://"):
            notes.append(_("The service is reached without encryption."))
        return notes
