"""Webhooks of the installation and of all people, and what was sent: for holders of `configure`."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from conversations.errors import ConversationError
from conversations.models import Delivery, Webhook
from conversations.webhooks import service


class ConfigureAdmin(ModelAdmin):  # type: ignore[misc]
    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("accounts.configure")

    has_change_permission = has_delete_permission = has_view_permission

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)


class WebhookForm(forms.ModelForm):  # type: ignore[type-arg]
    events = forms.MultipleChoiceField(
        label=_("Events"),
        choices=Webhook.Event.choices,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=_("What it is told of."),
    )

    class Meta:
        model = Webhook
        fields = ("url", "user", "events", "enabled", "private_allowed")

    def clean_url(self) -> str:
        try:
            return service.check_url(self.cleaned_data["url"])
        except ConversationError as error:
            raise forms.ValidationError(error.message) from None


@admin.register(Webhook)
class WebhookAdmin(ConfigureAdmin):
    form = WebhookForm
    list_display = ("url", "owner", "shown_events", "enabled", "failures", "created_at")
    list_filter = ("enabled",)
    list_select_related = ("user",)
    search_fields = ("url", "user__username")
    autocomplete_fields = ("user",)

    @admin.display(description=_("owner"), ordering="user__username")
    def owner(self, webhook: Webhook) -> Any:
        return webhook.user or _("everybody's runs")

    @admin.display(description=_("events"))
    def shown_events(self, webhook: Webhook) -> str:
        return ", ".join(webhook.events)

    def save_model(self, request: HttpRequest, obj: Webhook, form: Any, change: bool) -> None:
        if not change:
            obj.secret = service.new_secret()
        elif "enabled" in form.changed_data:
            obj.failures = 0
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Webhook, post_url_continue: str | None = None) -> HttpResponse:
        """Shows the secret in this one response, and nowhere else."""
        context = {
            **self.admin_site.each_context(request),
            "title": _("The new webhook"),
            "opts": self.opts,
            "webhook": obj,
            "secret": obj.secret.get_secret_value(),
        }
        response = TemplateResponse(request, "admin/conversations/webhook/created.html", context)
        response["Cache-Control"] = "no-store"
        return response


@admin.register(Delivery)
class DeliveryAdmin(ConfigureAdmin):
    list_display = ("event", "address", "state", "tries", "status", "elapsed_ms", "beginning", "due_at", "created_at")
    list_filter = ("state", "event")
    list_select_related = ("webhook",)
    list_per_page = 50
    search_fields = ("event", "webhook__url", "answer")
    actions = ("replay",)

    @admin.display(description=_("webhook"), ordering="webhook__url")
    def address(self, delivery: Delivery) -> str:
        return Truncator(delivery.webhook.url).chars(60)

    @admin.display(description=_("answer"))
    def beginning(self, delivery: Delivery) -> str:
        return Truncator(delivery.answer).chars(80)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.action(description=_("Send the selected ones again"), permissions=["view"])
    def replay(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        for delivery in queryset.select_related("webhook"):
            try:
                service.send_again(delivery)
            except ConversationError as error:
                self.message_user(request, f"{delivery.webhook}: {error.message}", messages.ERROR)
        self.message_user(request, _("They are being sent. Reload the page to see what became of them."))
