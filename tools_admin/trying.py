"""Trying a tool in the admin: a form made of its schema, and one call as oneself."""

import json
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.html import escape
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.models import User
from tools_admin.forms import OptionalJSONField
from tools_admin.models import Tool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was sent and what came back, both without secrets."""

    sent: str
    content: str
    is_error: bool
    seconds: float


class TryForm(forms.Form):
    """One field an argument; what is no plain value is entered as JSON. Empty means not given."""

    def __init__(self, tool: Tool, data: Any = None) -> None:
        super().__init__(data)
        self.tool = tool
        required = set(tool.parameters.get("required", []))
        for name, schema in tool.parameters.get("properties", {}).items():
            self.fields[f"argument_{name}"] = _field(name, schema if isinstance(schema, dict) else {}, name in required)
        if tool.asks_first:
            self.fields["confirmed"] = forms.BooleanField(
                label=_("Run it although it changes something or needs approval"), widget=UnfoldBooleanSwitchWidget()
            )

    def arguments(self) -> dict[str, Any]:
        """Raises ValueError when a JSON field holds none."""
        given = {}
        for name, schema in self.tool.parameters.get("properties", {}).items():
            value = self.cleaned_data.get(f"argument_{name}")
            if value in (None, ""):
                continue
            given[name] = _value(value, schema if isinstance(schema, dict) else {})
        return given


def _field(name: str, schema: dict[str, Any], required: bool) -> forms.Field:
    shared: dict[str, Any] = {
        "label": name,
        "required": required,
        "help_text": escape(str(schema.get("description", ""))[:300]),  # the theme takes help texts for HTML of ours
    }
    if isinstance(schema.get("enum"), list):
        values: list[tuple[str, Any]] = [("", "—"), *((json.dumps(value), str(value)) for value in schema["enum"])]
        return forms.ChoiceField(choices=values, widget=UnfoldAdminSelectWidget(), **shared)
    match _plain_type(schema):
        case "string":
            return forms.CharField(widget=UnfoldAdminTextInputWidget(), **shared)
        case "integer":
            return forms.IntegerField(widget=UnfoldAdminIntegerFieldWidget(), **shared)
        case "number":
            return forms.FloatField(widget=UnfoldAdminTextInputWidget(), **shared)
        case "boolean":
            choices: list[tuple[str, Any]] = [("", "—"), ("true", _("Yes")), ("false", _("No"))]
            return forms.ChoiceField(choices=choices, widget=UnfoldAdminSelectWidget(), **shared)
    return OptionalJSONField(widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "placeholder": "JSON"}), **shared)


def _plain_type(schema: dict[str, Any]) -> Any:
    """The type; of several that one may leave out, the one that is not null."""
    kind = schema.get("type")
    kinds = [name for name in kind if name != "null"] if isinstance(kind, list) else [kind]
    return kinds[0] if len(kinds) == 1 else None


def _value(value: Any, schema: dict[str, Any]) -> Any:
    return json.loads(value) if "enum" in schema or _plain_type(schema) == "boolean" else value


async def run(tool: Tool, user: User, arguments: dict[str, Any]) -> Outcome:
    """One call, with the person's rights and credentials; `tool.connector` must be loaded."""
    from time import perf_counter

    from tools_admin.toolbox import engine_tool_of

    sent: list[str] = []
    engine_tool = engine_tool_of(tool, user, sent)
    begun = perf_counter()
    if problem := engine_tool.argument_error(arguments):
        return Outcome("", problem, True, 0.0)
    result = await engine_tool.execute(arguments)
    text = result.content
    for artifact in result.artifacts:
        text += f"\n{artifact.filename} ({artifact.content_type}, {len(artifact.data):,} bytes)"
    cut = text if len(text) <= tool.max_result_chars else f"{text[: tool.max_result_chars]}\n…"
    return Outcome("\n".join(sent), _readable(cut), result.is_error, perf_counter() - begun)


def _readable(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
