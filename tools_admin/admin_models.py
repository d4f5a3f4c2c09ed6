"""Providers, models and routes in the admin."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin, StackedInline
from unfold.widgets import UnfoldAdminTextareaWidget

from agentapp.encryption import UndecryptableSecret
from tools_admin.check_pages import CheckPages, state_of
from tools_admin.defaults import save_as_default
from tools_admin.forms import ReadableJSONField
from tools_admin.forms_models import LanguageModelForm, ProviderForm
from tools_admin.health import present_health
from tools_admin.models import Agent, LanguageModel, Provider, Route, RouteEntry
from tools_admin.presets import PRESETS
from tools_admin.seeding import ROLES
from tools_admin.try_pages import TryPages

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
class ProviderAdmin(CheckPages, ModelAdmin):  # type: ignore[misc]
    form = ProviderForm
    formfield_overrides = _JSON
    list_display = ("name", "base_url", "key_state", "checked", "source_label", "enabled")
    list_filter = ("enabled", "source")
    search_fields = ("name", "base_url")
    change_form_template = "admin/tools_admin/provider/form.html"

    @admin.display(description=_("key"))
    def key_state(self, provider: Provider) -> Any:
        try:
            return _("set") if provider.api_key.get_secret_value() else _("not set")
        except UndecryptableSecret:
            return _("cannot be read with the present ENCRYPTION_KEYS; enter it anew")

    @admin.display(description=_("last check"))
    def checked(self, provider: Provider) -> Any:
        return format_html('<a href="{}">{}</a>', self.check_url(provider), state_of(provider).text)

    @admin.display(description=_("managed by"), ordering="source")
    def source_label(self, provider: Provider) -> str:
        return provider.get_source_display()

    @admin.display(description=_("locked"))
    def why_locked(self, provider: Provider) -> Any:
        return _LOCKED[Provider.Source(provider.source)]

    def get_fieldsets(self, request: HttpRequest, obj: Provider | None = None) -> Any:
        key: tuple[str, ...] = ("new_api_key",) if obj is None else ("key_state", "new_api_key", "clear_api_key")
        main: tuple[str, ...] = ("preset", "base_url", *key, "name", "enabled")
        if obj is not None and not self.has_change_permission(request, obj):
            locked = ("why_locked",) if obj.is_locked else ()
            main = (*locked, "name", "preset", "base_url", "key_state", "enabled")
        limits = ("timeout", "max_concurrent", "requests_per_minute")
        return (
            (None, {"fields": main}),
            (_("Limits"), {"fields": limits, "classes": ("collapse",)}),
            (_("Extras"), {"fields": ("extra_headers", "extra_body"), "classes": ("collapse",)}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Provider | None = None) -> Sequence[str]:
        return ("why_locked", "key_state")

    def has_change_permission(self, request: HttpRequest, obj: Provider | None = None) -> bool:
        return super().has_change_permission(request, obj) and (obj is None or not obj.is_locked)

    def has_delete_permission(self, request: HttpRequest, obj: Provider | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or not obj.is_locked)

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], **options: Any) -> Any:
        presets = {
            preset.name: {"url": preset.base_url, "hint": str(preset.hint), "key": preset.needs_key}
            for preset in PRESETS.values()
        }
        obj = options.get("obj")
        context |= {"presets": presets, "check_url": self.check_url(obj) if obj is not None else ""}
        return super().render_change_form(request, context, **options)

    def save_model(self, request: HttpRequest, obj: Provider, form: ProviderForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if form.key_left_behind:
            self.message_user(
                request,
                _("The key was removed, because it was made for another address. Enter it anew if it is the same."),
                messages.WARNING,
            )

    def response_add(self, request: HttpRequest, obj: Provider, post_url_continue: str | None = None) -> HttpResponse:
        """A new endpoint is asked at once what it has."""
        if "_popup" in request.POST or "_addanother" in request.POST:
            return super().response_add(request, obj, post_url_continue)  # type: ignore[no-any-return]
        return self.start_check(obj, obj)


@admin.register(LanguageModel)
class LanguageModelAdmin(DefaultAdmin):
    form = LanguageModelForm
    formfield_overrides = _JSON
    list_display = ("__str__", "provider", "is_default", "enabled", "health", "context_size", "abilities_shown")
    list_filter = ("enabled", "kind", "provider")
    list_select_related = ("provider",)
    search_fields = ("name", "label")
    autocomplete_fields = ("groups",)
    change_form_template = "admin/tools_admin/provider/form.html"
    fieldsets: Any = (
        (None, {"fields": ("why_locked", "provider", "name", "label", "kind", "enabled", "is_default", "groups")}),
        (
            _("Abilities"),
            {
                "fields": (
                    "last_check_shown",
                    *(("tool_call", "parallel_calls"), ("json_mode", "json_schema"), ("streaming", "stream_usage")),
                    ("vision", "small"),
                )
            },
        ),
        (_("Limits and extras"), {"fields": ("context_size", "max_output_tokens", "extra_body")}),
        (_("Prices"), {"fields": (("input_price", "cached_price"), ("output_price", "reasoning_price"))}),
    )

    @admin.display(description=_("locked"))
    def why_locked(self, model: LanguageModel) -> Any:
        return _LOCKED.get(Provider.Source(model.provider.source), "")

    @admin.display(description=_("last check"))
    def last_check_shown(self, model: LanguageModel) -> Any:
        url = reverse("admin:tools_admin_provider_check", args=[model.provider_id])
        return format_html('<a href="{}">{}</a>', url, state_of(model).text)

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], **options: Any) -> Any:
        obj: LanguageModel | None = options.get("obj")
        if obj is not None:
            context["check_url"] = reverse("admin:tools_admin_provider_check", args=[obj.provider_id])
        return super().render_change_form(request, context, **options)

    @admin.display(description=_("answers"))
    def health(self, model: LanguageModel) -> Any:
        state = self._health.get(model.pk)
        if state is None:
            return _("yes")
        failures = ngettext("%d failure in a row", "%d failures in a row", state.failures) % state.failures
        return _("left alone after %(failures)s") % {"failures": failures} if state.is_open else failures

    @admin.display(description=_("abilities"))
    def abilities_shown(self, model: LanguageModel) -> str:
        shown = ("tool_call", "json_schema", "vision", "small")
        return ", ".join(LanguageModel.ability_label(name) for name in shown if getattr(model, name)) or "–"

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[LanguageModel]:
        self._health = present_health()  # once a page
        queryset: models.QuerySet[LanguageModel] = super().get_queryset(request)
        return queryset

    def get_fieldsets(self, request: HttpRequest, obj: LanguageModel | None = None) -> Any:
        hidden = set() if obj is not None and obj.provider.is_locked else {"why_locked"}
        hidden |= {"last_check_shown"} if obj is None else set()
        return [
            (title, {**options, "fields": [name for name in options["fields"] if name not in hidden]})
            for title, options in super().get_fieldsets(request, obj)
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: LanguageModel | None = None) -> Sequence[str]:
        if obj is None or not obj.provider.is_locked:
            return ("last_check_shown",)
        if obj.provider.source == Provider.Source.ENVIRONMENT:
            return ("why_locked", "last_check_shown", "provider", "name", "enabled")
        own = {"is_default", "groups", "input_price", "cached_price", "output_price", "reasoning_price"}
        return [name for name in flatten_fieldsets(self.fieldsets) if name not in own]

    def has_delete_permission(self, request: HttpRequest, obj: LanguageModel | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or not obj.provider.is_locked)

    def formfield_for_foreignkey(self, field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if field.name == "provider":
            kwargs["queryset"] = Provider.objects.filter(source=Provider.Source.ADMIN)
        return super().formfield_for_foreignkey(field, request, **kwargs)


class RouteEntryInline(StackedInline):  # type: ignore[misc]
    model = RouteEntry
    extra = 0
    ordering_field = "position"
    hide_ordering_field = True
    autocomplete_fields = ("model", "groups")
    fields = (
        "model",
        "groups",
        ("tools", "images"),
        ("min_tokens", "max_tokens"),
        ("from_time", "until_time"),
        "min_budget",
        "position",
    )

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[RouteEntry]:
        queryset: models.QuerySet[RouteEntry] = super().get_queryset(request)
        return queryset.select_related("model")


@admin.register(Route)
class RouteAdmin(TryPages, ModelAdmin):  # type: ignore[misc]
    change_form_template = "admin/tools_admin/route/form.html"
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

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], **options: Any) -> Any:
        obj = options.get("obj")
        context["try_url"] = self.try_url(obj) if obj is not None else ""
        return super().render_change_form(request, context, **options)

    def get_readonly_fields(self, request: HttpRequest, obj: Route | None = None) -> Sequence[str]:
        return ("name",) if obj is not None and obj.name in ROLES else ()

    def has_delete_permission(self, request: HttpRequest, obj: Route | None = None) -> bool:
        """The product's own roles stay; one without models is played by the default model."""
        return super().has_delete_permission(request, obj) and (obj is None or obj.name not in ROLES)
