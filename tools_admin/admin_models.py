"""Providers, models and routes in the admin."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin, TabularInline
from unfold.widgets import UnfoldAdminTextareaWidget

from tools_admin.defaults import save_as_default
from tools_admin.forms import LanguageModelForm, ProviderForm, ReadableJSONField
from tools_admin.models import Agent, LanguageModel, Provider, Route, RouteEntry
from tools_admin.seeding import ROLES

_JSON = {models.JSONField: {"form_class": ReadableJSONField, "widget": UnfoldAdminTextareaWidget}}
_LOCKED = {
    Provider.Source.ENVIRONMENT: _("Set by OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL; change it there."),
    Provider.Source.DEMO: _("The demo model on this machine; DEMO_MODEL changes or removes it."),
}


class DefaultAdmin(ModelAdmin):  # type: ignore[misc]
    """Of the rows of a table one is the default: ticking it here takes the mark from the one before."""

    def save_model(self, request: HttpRequest, obj: LanguageModel | Agent, form: Any, change: bool) -> None:
        if obj.is_default:
            save_as_default(obj)
        else:
            super().save_model(request, obj, form, change)


@admin.register(Provider)
class ProviderAdmin(ModelAdmin):  # type: ignore[misc]
    form = ProviderForm
    list_display = ("name", "base_url", "key_state", "source_label", "enabled")
    list_filter = ("enabled", "source")
    search_fields = ("name", "base_url")

    @admin.display(description=_("key"))
    def key_state(self, provider: Provider) -> Any:
        return _("set") if provider.api_key.get_secret_value() else _("not set")

    @admin.display(description=_("managed by"), ordering="source")
    def source_label(self, provider: Provider) -> str:
        return provider.get_source_display()

    @admin.display(description=_("locked"))
    def why_locked(self, provider: Provider) -> Any:
        return _LOCKED[Provider.Source(provider.source)]

    def get_fields(self, request: HttpRequest, obj: Provider | None = None) -> Sequence[str]:
        if obj is None:
            return ("name", "base_url", "new_api_key", "enabled", "timeout")
        if not self.has_change_permission(request, obj):
            locked = ("why_locked",) if obj.is_locked else ()
            return (*locked, "name", "base_url", "key_state", "enabled", "timeout", "updated_at")
        return ("name", "base_url", "key_state", "new_api_key", "clear_api_key", "enabled", "timeout", "updated_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Provider | None = None) -> Sequence[str]:
        return ("why_locked", "key_state", "updated_at")

    def has_change_permission(self, request: HttpRequest, obj: Provider | None = None) -> bool:
        return super().has_change_permission(request, obj) and (obj is None or not obj.is_locked)

    def has_delete_permission(self, request: HttpRequest, obj: Provider | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or not obj.is_locked)

    def save_model(self, request: HttpRequest, obj: Provider, form: ProviderForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if form.key_left_behind:
            self.message_user(
                request,
                _("The key was removed, because it was made for another address. Enter it anew if it is the same."),
                messages.WARNING,
            )


@admin.register(LanguageModel)
class LanguageModelAdmin(DefaultAdmin):
    form = LanguageModelForm
    formfield_overrides = _JSON
    list_display = ("__str__", "provider", "is_default", "enabled", "context_size", "tool_call", "small")
    list_filter = ("enabled", "provider")
    list_select_related = ("provider",)
    search_fields = ("name", "label")
    fieldsets = (
        (None, {"fields": ("why_locked", "provider", "name", "label", "enabled", "is_default")}),
        (_("Abilities"), {"fields": ("tool_call", "json_mode", "json_schema", "streaming", "vision", "small")}),
        (_("Limits and extras"), {"fields": ("context_size", "max_output_tokens", "extra_body")}),
    )

    @admin.display(description=_("locked"))
    def why_locked(self, model: LanguageModel) -> Any:
        return _LOCKED.get(Provider.Source(model.provider.source), "")

    def get_fieldsets(self, request: HttpRequest, obj: LanguageModel | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is not None and obj.provider.is_locked:
            return fieldsets
        title, options = fieldsets[0]
        return [(title, {**options, "fields": options["fields"][1:]}), *fieldsets[1:]]

    def get_readonly_fields(self, request: HttpRequest, obj: LanguageModel | None = None) -> Sequence[str]:
        if obj is None or not obj.provider.is_locked:
            return ()
        if obj.provider.source == Provider.Source.ENVIRONMENT:
            return ("why_locked", "provider", "name", "enabled")
        own = [name for _title, options in self.fieldsets for name in options["fields"]]
        return [name for name in own if name != "is_default"]

    def has_delete_permission(self, request: HttpRequest, obj: LanguageModel | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or not obj.provider.is_locked)

    def formfield_for_foreignkey(self, field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if field.name == "provider":
            kwargs["queryset"] = Provider.objects.filter(source=Provider.Source.ADMIN)
        return super().formfield_for_foreignkey(field, request, **kwargs)


class RouteEntryInline(TabularInline):  # type: ignore[misc]
    model = RouteEntry
    extra = 0
    ordering_field = "position"
    hide_ordering_field = True
    autocomplete_fields = ("model", "groups")
    fields = (
        "model",
        "groups",
        "tools",
        "images",
        "min_tokens",
        "max_tokens",
        "min_budget",
        "from_time",
        "until_time",
        "position",
    )


@admin.register(Route)
class RouteAdmin(ModelAdmin):  # type: ignore[misc]
    list_display = ("name", "description", "models_in_order", "enabled")
    list_filter = ("enabled",)
    search_fields = ("name", "description")
    fields = ("name", "description", "enabled")
    inlines = (RouteEntryInline,)

    @admin.display(description=_("models"))
    def models_in_order(self, route: Route) -> str:
        return " → ".join(str(entry.model) for entry in route.entries.all()) or "–"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Route]:
        queryset: models.QuerySet[Route] = super().get_queryset(request)
        return queryset.prefetch_related("entries__model")

    def get_readonly_fields(self, request: HttpRequest, obj: Route | None = None) -> Sequence[str]:
        return ("name",) if obj is not None and obj.name in ROLES else ()

    def has_delete_permission(self, request: HttpRequest, obj: Route | None = None) -> bool:
        """The product's own roles stay; one without models is played by the default model."""
        return super().has_delete_permission(request, obj) and (obj is None or obj.name not in ROLES)
