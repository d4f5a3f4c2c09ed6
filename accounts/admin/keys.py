"""API keys: made for oneself, for service accounts, or by a superuser for others; shown once."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import ForeignKey, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts import services
from accounts.forms import ScopesField
from accounts.models import ApiKey, User
from accounts.roles import is_above


def _users_for(maker: Any) -> QuerySet[User]:
    """Whom one makes keys for: a superuser for everybody; others for themselves, and for service accounts that may
    do nothing which they may not."""
    users = User.objects.filter(is_active=True)
    if maker.is_superuser:
        return users
    services_below = [user.pk for user in users.filter(is_service=True) if is_above(maker, user)]
    return users.filter(pk__in=[maker.pk, *services_below])


NEW = ("user", "name", "scopes", "addresses", "expires_at")


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    scopes = ScopesField(UnfoldAdminCheckboxSelectMultipleWidget)

    class Meta:
        model = ApiKey
        fields = NEW

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise forms.ValidationError(_("This moment has passed."))
        return expires_at


_TIMES = ("created_at", "last_used_at", "expires_at", "revoked_at")


@admin.register(ApiKey)
class ApiKeyAdmin(ModelAdmin):  # type: ignore[misc]
    form = ApiKeyForm
    list_display = ("name", "user", "shown_prefix", "state", "last_used_at", "expires_at", "created_at")
    list_filter = ("created_at",)
    list_select_related = ("user",)
    search_fields = ("name", "prefix", "user__username")
    actions = ("revoke",)
    fields = NEW

    @admin.display(description=_("key"))
    def shown_prefix(self, key: ApiKey) -> str:
        return f"{key.prefix}…"

    @admin.display(description=_("state"))
    def state(self, key: ApiKey) -> Any:
        if key.revoked_at is not None:
            return _("revoked")
        if key.expires_at is not None and key.expires_at <= timezone.now():
            return _("expired")
        return _("open") if key.user.is_active else _("account disabled")

    @admin.display(description=_("scopes"))
    def shown_scopes(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)

    @admin.display(description=_("allowed addresses"))
    def shown_addresses(self, key: ApiKey) -> Any:
        return ", ".join(key.addresses) or _("anywhere")

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Sequence[str]:
        if obj is None:
            return self.fields
        return ("name", "user", "shown_prefix", "state", "shown_scopes", "shown_addresses", *_TIMES)

    def get_form(self, request: HttpRequest, obj: ApiKey | None = None, change: bool = False, **kwargs: Any) -> Any:
        """Of a key that is made only the name can be changed: programs rely on the rest."""
        return super().get_form(request, obj, change=change, **({"form": forms.ModelForm} if obj else {}), **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Sequence[str]:
        return [name for name in self.get_fields(request, obj) if name != "name"] if obj is not None else ()

    def formfield_for_foreignkey(self, field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        if field.name == "user":
            kwargs["queryset"] = _users_for(request.user)
            kwargs["initial"] = request.user.pk
        return super().formfield_for_foreignkey(field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        created, text = services.create_api_key(
            obj.user, obj.name, obj.expires_at, scopes=obj.scopes, addresses=obj.addresses
        )
        obj.pk, obj.prefix = created.pk, created.prefix
        vars(obj)["text_to_show_once"] = text

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        """Shows the key in this one response, and nowhere else: no message, session or log ever holds it."""
        context = {
            **self.admin_site.each_context(request),
            "title": _("The new API key"),
            "opts": self.opts,
            "key": obj,
            "text": vars(obj).pop("text_to_show_once"),
        }
        response = TemplateResponse(request, "admin/accounts/apikey/created.html", context)
        response["Cache-Control"] = "no-store"
        return response

    @admin.action(description=_("Revoke the selected keys"), permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        for key in queryset.filter(revoked_at=None):
            services.revoke_api_key(key)
            self.log_change(request, key, "Revoked.")
        self.message_user(request, _("The selected keys are closed now."), messages.SUCCESS)
