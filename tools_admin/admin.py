"""Agents in the admin; models, connectors and tools are in modules of their own."""

from django.contrib import admin
from django.db import models
from django.utils.translation import gettext_lazy as _
from unfold.admin import StackedInline
from unfold.widgets import UnfoldAdminTextareaWidget

from tools_admin.admin_connectors import ConnectorAdmin as ConnectorAdmin
from tools_admin.admin_models import DefaultAdmin
from tools_admin.admin_tools import ToolAdmin as ToolAdmin
from tools_admin.forms import AgentForm, ReadableJSONField
from tools_admin.models import Agent, Workflow

admin.site.index_template = "admin/start.html"

_JSON = {models.JSONField: {"form_class": ReadableJSONField, "widget": UnfoldAdminTextareaWidget}}


class WorkflowInline(StackedInline):  # type: ignore[misc]
    model = Workflow
    formfield_overrides = _JSON
    extra = 0
    autocomplete_fields = ("tool",)
    tab = True


@admin.register(Agent)
class AgentAdmin(DefaultAdmin):
    form = AgentForm
    formfield_overrides = _JSON
    list_display = ("name", "description", "route", "model", "is_default", "enabled")
    list_filter = ("enabled",)
    list_select_related = ("model", "route")
    search_fields = ("name", "description")
    autocomplete_fields = ("route", "model", "tools", "connectors", "delegates")
    inlines = (WorkflowInline,)
    fieldsets = (
        (None, {"fields": ("name", "description", "enabled", "is_default")}),
        (_("Behaviour"), {"fields": ("instructions", "mode", "route", "model", "max_iterations")}),
        (_("Tools"), {"fields": ("tools", "connectors", "delegates")}),
        (_("Examples"), {"fields": ("starters", "examples")}),
    )
