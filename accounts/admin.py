"""People: users, groups and API keys.

Rights cannot be lifted through the admin: only superusers give rights, change superusers, or make keys for others.
"""

from collections.abc import Sequence
from typing import Any

from allauth.account.decorators import secure_admin_login
from allauth.account.models import EmailAddress
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission
from django.db.models import ForeignKey, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts import services
from accounts.models import ApiKey, User

# Signing in to the admin is signing in to the site: one page, one rate limit.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

admin.site.unregister(Group)
admin.site.unregister(EmailAddress)


class PermissionsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """The permissions that open something, as a list to tick. Django makes four for every table, used or not."""

    OPENING = (
        Q(content_type__app_label="accounts", content_type__model__in=["user", "apikey"])
        | Q(content_type__app_label="auth", content_type__model="group")
        | Q(content_type__app_label="tools_admin")
        | Q(codename__in=["view_all_runs", "view_inspection"])
    )

    def __init__(self) -> None:
        super().__init__(
            Permission.objects.filter(self.OPENING).exclude(codename__in=["add_tool", "delete_tool"]),
            required=False,
            widget=UnfoldAdminCheckboxSelectMultipleWidget(),
            label=_("Permissions"),
        )

    def label_from_instance(self, obj: Any) -> str:
        return str(obj.name)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    search_fields = ("username", "email", "first_name", "last_name")
    readonly_fields = ("last_login", "date_joined")
    filter_horizontal = ()
    autocomplete_fields = ("groups",)
    actions = ("enable", "disable")
    fieldsets = (
        (None, {"fields": ("username", "password", "first_name", "last_name", "email")}),
        (_("Rights"), {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")}),
        (_("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = ((None, {"fields": ("username", "email", "usable_password", "password1", "password2")}),)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name == "user_permissions":
            return PermissionsField()
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        own = super().get_readonly_fields(request, obj)
        if request.user.is_superuser:
            return own
        return (*own, "is_staff", "is_superuser", "groups", "user_permissions")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Who has run something stays, disabled: a record that loses its people is none (see conversations.admin)."""
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)

    @admin.action(description=_("Disable the selected accounts"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._set_active(request, queryset.exclude(username=request.user.get_username()), False)

    @admin.action(description=_("Enable the selected accounts"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        self._set_active(request, queryset, True)

    def _set_active(self, request: HttpRequest, queryset: QuerySet[User], active: bool) -> None:
        changed = [user for user in queryset.filter(is_active=not active) if self.has_change_permission(request, user)]
        for user in changed:
            user.is_active = active
            user.save(update_fields=["is_active"])
            self.log_change(request, user, [{"changed": {"fields": ["Active"]}}])
        text = ngettext("%d account was changed.", "%d accounts were changed.", len(changed)) % len(changed)
        self.message_user(request, text, messages.SUCCESS)


def _may_touch(request: HttpRequest, obj: User | None) -> bool:
    """A superuser's password or address in other hands would be a superuser's rights in other hands."""
    return obj is None or not obj.is_superuser or bool(request.user.is_superuser)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):  # type: ignore[misc]
    filter_horizontal = ()

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        if db_field.name == "permissions":
            return PermissionsField()
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Group | None = None) -> Any:
        return () if request.user.is_superuser else ("permissions",)


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = ApiKey
        fields = ("user", "name", "expires_at")

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise forms.ValidationError(_("This moment has passed."))
        return expires_at


@admin.register(ApiKey)
class ApiKeyAdmin(ModelAdmin):  # type: ignore[misc]
    form = ApiKeyForm
    list_display = ("name", "user", "shown_prefix", "state", "last_used_at", "expires_at", "created_at")
    list_filter = ("created_at",)
    list_select_related = ("user",)
    search_fields = ("name", "prefix", "user__username")
    actions = ("revoke",)
    fields = ("user", "name", "expires_at")

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

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Sequence[str]:
        if obj is None:
            return self.fields
        return ("name", "user", "shown_prefix", "state", "created_at", "last_used_at", "expires_at", "revoked_at")

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Sequence[str]:
        return [name for name in self.get_fields(request, obj) if name != "name"] if obj is not None else ()

    def formfield_for_foreignkey(self, field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        if field.name == "user":
            users = User.objects.filter(is_active=True)
            if not request.user.is_superuser:
                users = users.filter(username=request.user.get_username())
            kwargs["queryset"] = users
            kwargs["initial"] = request.user.pk
        return super().formfield_for_foreignkey(field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        created, text = services.create_api_key(obj.user, obj.name, obj.expires_at)
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
