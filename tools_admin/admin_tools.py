"""Tools in the admin: what they may do and for whom, hand-made actions, and trying one."""

from collections.abc import Sequence
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.money_field import MoneyField
from tools_admin.forms import ReadableJSONField
from tools_admin.models import Connector, Tool
from tools_admin.trying import TryForm, run

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
    change_form_template = "admin/tools/change_form.html"
    autocomplete_fields = ("groups",)

    # Forms: the connector decides -------------------------------------------------------------------------------------

    def _connector(self, request: HttpRequest, obj: Tool | None) -> Connector | None:
        """Tools come from connectors; only those of http connectors are written here."""
        if obj is not None:
            return obj.connector
        number = request.GET.get("connector", "")
        return Connector.objects.filter(kind="http", pk=number).first() if number.isdecimal() else None

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name == "price":
            words = _("%(currency)s for each call that runs; a refused one costs nothing.")
            return MoneyField(label=_("Price of a call"), help_text=words % {"currency": settings.CURRENCY})
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_form(self, request: HttpRequest, obj: Tool | None = None, change: bool = False, **kwargs: Any) -> Any:
        connector = self._connector(request, obj)
        if connector and connector.kind == "http":
            from tools_admin.connectors.http.forms import ActionForm

            kwargs["form"] = ActionForm
        return super().get_form(request, obj, change=change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Tool | None = None) -> Any:
        connector = self._connector(request, obj)
        rules = ("effect_class", "approval", "approvers", "groups", "direct", "enabled")
        limits = (_("Limits"), {"fields": ("timeout", "max_result_chars", "price")})
        if connector and connector.kind == "http":
            return [
                (None, {"fields": ("name", "description", ("method", "path"), "query", "headers", "body", "select")}),
                (_("Arguments"), {"fields": ("parameters",)}),
                (_("Rules"), {"fields": rules}),
                limits,
            ]
        return [
            (None, {"fields": ("name", "connector", "description", "parameters")}),
            (_("Rules"), {"fields": rules}),
            limits,
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Tool | None = None) -> Sequence[str]:
        if obj is None or obj.connector.kind == "http":
            return ()
        fixed = ("effect_class",) if obj.connector.kind == "builtin" else ()
        return ("name", "connector", "description", "parameters", *fixed)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and self._connector(request, None) is not None

    def has_delete_permission(self, request: HttpRequest, obj: Tool | None = None) -> bool:
        return super().has_delete_permission(request, obj) and obj is not None and obj.connector.kind != "builtin"

    def save_model(self, request: HttpRequest, obj: Tool, form: Any, change: bool) -> None:
        if not change:
            connector = self._connector(request, None)
            if connector is None:
                raise PermissionDenied
            obj.connector = connector
        super().save_model(request, obj, form, change)

    # Trying -----------------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        page = self.admin_site.admin_view(self.try_page)
        return [path("<int:pk>/try/", page, name="tools_admin_tool_try"), *super().get_urls()]

    def try_page(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Runs the tool as oneself: with one's own groups and connected accounts, and a word before it writes."""
        tool = get_object_or_404(Tool.objects.select_related("connector"), pk=pk)
        if not self.has_change_permission(request, tool):
            raise PermissionDenied
        user: Any = request.user
        if not Tool.objects.visible_to(user).filter(pk=pk).exists():
            text = _("This tool is switched off, or granted to groups that you are not in; so you cannot run it.")
            self.message_user(request, text, messages.ERROR)
            return HttpResponseRedirect(reverse("admin:tools_admin_tool_change", args=[pk]))
        form, outcome = TryForm(tool, request.POST or None), None
        if request.method == "POST" and form.is_valid():
            outcome = async_to_sync(run)(tool, user, form.arguments())
            self.log_change(request, tool, "Tried.")
        context = {**self.admin_site.each_context(request), "opts": self.opts, "title": _("Try %s") % tool.name}
        return TemplateResponse(
            request, "admin/tools/try.html", {**context, "tool": tool, "form": form, "outcome": outcome}
        )

    # Switching on and off ---------------------------------------------------------------------------------------------

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
