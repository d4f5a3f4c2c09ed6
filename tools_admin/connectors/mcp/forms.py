from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from tools_admin.connector_forms import ConnectorForm
from tools_admin.validators import validate_endpoint


class McpForm(ConnectorForm):
    base_url = forms.CharField(
        label=_("Address"),
        required=False,
        max_length=500,
        validators=[validate_endpoint],
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "https://mcp.example.org/mcp"}),
        help_text=_("Of the server's endpoint (Streamable HTTP)."),
    )
    command = forms.ChoiceField(
        label=_("Command"),
        required=False,
        widget=UnfoldAdminSelectWidget(),
        help_text=_("Instead of an address: a program that the operator allows by MCP_COMMANDS."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        allowed = [(name, name) for name in settings.MCP_COMMANDS]
        self.fields["command"].choices = [("", "---"), *allowed]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors and bool(cleaned.get("base_url")) == bool(cleaned.get("command")):
            self.add_error("base_url", _("Enter an address, or choose a command."))
        return cleaned

    def read_settings(self) -> dict[str, Any]:
        return {"base_url": self.cleaned_data["base_url"], "command": self.cleaned_data["command"]}
