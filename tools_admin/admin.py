"""Tools and agents: what administrators configure; models are in `admin_models.py`."""

from collections.abc import Sequence

from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextareaWidget

from tools_admin.admin_models import DefaultAdmin
from tools_admin.forms import AgentForm, ReadableJSONField
from tools_admin.models import Agent, Tool

admin.site.index_template = "admin/start.html"

_JSON = {models.JSONField: {"form_class": ReadableJSONField, "widget": UnfoldAdminTextareaWidget}}


@admin.register(Tool)
class ToolAdmin(ModelAdmin):  # type: ignore[misc]
    formfield_overrides = _JSON
    list_display = ("name", "connector", "effect_class", "approval", "enabled")
    list_editable = ("enabled",)
    list_filter = ("enabled", "connector", "effect_class", "approval")
    list_select_related = ("connector",)
    search_fields = ("name", "description")
    actions = ("enable", "disable")
    fields = ("name", "kind", "enabled", "description", "parameters", "effect_class", "timeout", "max_result_chars")
    readonly_fields = ("kind",)

    def get_readonly_fields(self, request: HttpRequest, obj: Tool | None = None) -> Sequence[str]:
        return ("name", "kind", "description", "parameters", "effect_class")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Tools come from connectors."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Tool | None = None) -> bool:
        return False

    @admin.action(description=_("Enable the selected tools"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: models.QuerySet[Tool]) -> None:
        self._set_enabled(request, queryset, True)

    @admin.action(description=_("Disable the selected tools"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: models.QuerySet[Tool]) -> None:
        self._set_enabled(request, queryset, False)

    def _set_enabled(self, request: HttpRequest, queryset: models.QuerySet[Tool], enabled: bool) -> None:
        changed = list(queryset.filter(enabled=not enabled))
        for tool in changed:
            tool.enabled = enabled
            tool.save(update_fields=["enabled"])
            self.log_change(request, tool, [{"changed": {"fields": ["Enabled"]}}])
        text = ngettext(
            "%d tool was changed; it takes effect with the next run.",
            "%d tools were changed; it takes effect with the next run.",
            len(changed),
        )
        self.message_user(request, text % len(changed), messages.SUCCESS)


@admin.register(Agent)
class AgentAdmin(DefaultAdmin):
    form = AgentForm
    formfield_overrides = _JSON
    list_display = ("name", "description", "route", "model", "is_default", "enabled")
    list_filter = ("enabled",)
    list_select_related = ("model", "route")
    search_fields = ("name", "description")
    autocomplete_fields = ("route", "model", "tools")
    fieldsets = (
        (None, {"fields": ("name", "description", "enabled", "is_default")}),
        (_("Behaviour"), {"fields": ("instructions", "mode", "route", "model", "tools", "max_iterations")}),
        (_("Examples"), {"fields": ("starters", "examples")}),
    )
