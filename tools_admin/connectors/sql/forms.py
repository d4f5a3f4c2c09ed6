from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError as InvalidSettings
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from tools_admin.connector_forms import ConnectorForm
from tools_admin.connectors.sql.settings import SqlSettings


class NamesField(forms.CharField):
    """Names, one a line or separated by commas."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 3})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        return [name.strip() for name in text.replace(",", "\n").splitlines() if name.strip()]


def _text(label: Any, help_text: Any = "", **more: Any) -> forms.CharField:
    return forms.CharField(
        label=label, help_text=help_text, required=False, widget=UnfoldAdminTextInputWidget(), **more
    )


class SqlForm(ConnectorForm):
    """User name and password are entered as the connector's sign-in."""

    dialect = forms.ChoiceField(label=_("Kind of database"), widget=UnfoldAdminSelectWidget())
    host = _text(_("Host"), _("Empty for SQLite."), max_length=253)
    port = forms.IntegerField(
        label=_("Port"), initial=5432, min_value=1, max_value=65_535, widget=UnfoldAdminIntegerFieldWidget()
    )
    database = _text(_("Database"), _("Its name; of SQLite the name of a file in the folder SQL_FILES."))
    role = _text(_("Role"), _("Taken on after signing in. Best is a user that may do nothing but SELECT."))
    tls = forms.ChoiceField(
        label=_("Encryption"),
        choices=[
            ("prefer", _("If the server can")),
            ("require", _("Always")),
            ("verify-full", _("Always, with a certificate that is checked")),
        ],
        widget=UnfoldAdminSelectWidget(),
    )
    schemas = NamesField(label=_("Schemas"), required=False, initial=["public"])
    tables = NamesField(
        label=_("Tables"), required=False, help_text=_("Only these may be read, one a line. Empty means all.")
    )
    max_rows = forms.IntegerField(
        label=_("Most rows"), initial=200, min_value=1, max_value=5_000, widget=UnfoldAdminIntegerFieldWidget()
    )
    max_bytes = forms.IntegerField(
        label=_("Most bytes"),
        initial=200_000,
        min_value=1_000,
        max_value=5_000_000,
        widget=UnfoldAdminIntegerFieldWidget(),
        help_text=_("Of the rows as text; more is cut."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dialects = [
            ("postgresql", "PostgreSQL"),
            ("sqlite", "SQLite"),
            *((name, name) for name in settings.SQL_DIALECTS),
        ]
        self.fields["dialect"].choices = dialects  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            try:
                self.read_settings()
            except InvalidSettings as error:
                for problem in error.errors():
                    self.add_error(str(problem["loc"][0]) if problem["loc"] else None, problem["msg"])
        return cleaned

    def read_settings(self) -> dict[str, Any]:
        values = {name: self.cleaned_data[name] for name in self.own_fields()}
        return SqlSettings(**values).model_dump()
