"""Accounts: made by an administrator or by an invitation, disabled rather than deleted."""

from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from accounts.admin.groups import GroupsField
from accounts.models import User
from accounts.roles import groups_within, is_above

NEW = ("username", "email", "groups", "is_service")


class NewUserForm(UserCreationForm):  # type: ignore[misc]
    groups = GroupsField()

    class Meta(UserCreationForm.Meta):  # type: ignore[misc]
        model = User
        fields = NEW

    def save(self, commit: bool = True) -> Any:
        if self.cleaned_data["is_service"]:
            self.cleaned_data["password1"] = None  # as if none had been given
            self.instance.set_unusable_password()
        return super().save(commit)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[misc,type-arg]
    form = UserChangeForm
    add_form = NewUserForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "full_name", "email", "group_names", "state", "second_factor", "last_login")
    list_filter = ("is_active", "is_superuser", "is_service", "groups")
    list_filter_submit = True
    list_per_page = 50
    search_fields = ("username", "email", "first_name", "last_name")
    search_help_text = _("User name, name or e-mail address")
    readonly_fields = ("second_factor", "last_login", "date_joined")
    filter_horizontal = ()
    actions = ("enable", "disable", "remove_second_factor")
    fieldsets = (
        (None, {"fields": ("username", "password", "first_name", "last_name", "email", "language", "time_zone")}),
        (_("Rights"), {"fields": ("is_active", "groups", "is_superuser")}),
        (_("Signing in"), {"fields": ("is_service", "second_factor", "last_login", "date_joined")}),
    )
    add_fieldsets = ((None, {"fields": (*NEW, "usable_password", "password1", "password2")}),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        factors = Authenticator.objects.filter(user=OuterRef("pk"), type=Authenticator.Type.TOTP)
        users: QuerySet[User] = super().get_queryset(request)
        return users.prefetch_related("groups").annotate(has_factor=Exists(factors))

    @admin.display(description=_("name"), ordering="last_name")
    def full_name(self, user: User) -> str:
        return user.get_full_name()

    @admin.display(description=_("groups"))
    def group_names(self, user: User) -> str:
        return ", ".join(group.name for group in user.groups.all())

    @display(description=_("state"), ordering="is_active", label={"open": "success", "disabled": "danger"})  # type: ignore[untyped-decorator]
    def state(self, user: User) -> tuple[str, Any]:
        return ("open", _("open")) if user.is_active else ("disabled", _("disabled"))

    @admin.display(description=_("second factor"))
    def second_factor(self, user: User) -> Any:
        return _("on") if vars(user).get("has_factor") else _("off")

    def formfield_for_manytomany(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        return GroupsField() if db_field.name == "groups" else super().formfield_for_manytomany(db_field, request)

    def get_form(self, request: HttpRequest, obj: User | None = None, change: bool = False, **kwargs: Any) -> Any:
        """Groups that give more than one has are neither offered nor taken away."""
        made = super().get_form(request, obj, change=change, **kwargs)
        if isinstance(field := made.base_fields.get("groups"), GroupsField):
            held = obj.groups.all() if obj else Group.objects.none()
            field.offer(groups_within(request.user), held)
        if field := made.base_fields.get("is_active"):
            field.help_text = _("Disabled, a person is out with the next request. Disable instead of deleting.")
        if field := made.base_fields.get("is_superuser"):
            field.help_text = _("May do everything, without being given it. Best kept to one or two people.")
        for name, text in _HELP.items():
            if name in made.base_fields:
                made.base_fields[name].help_text = text
        return made

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        own = (*super().get_readonly_fields(request, obj), *(("is_service",) if obj else ()))
        return own if request.user.is_superuser else (*own, "is_superuser")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and (obj is None or is_above(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Who has run something stays, disabled: a record that loses its people is none (see conversations.admin)."""
        return super().has_delete_permission(request, obj) and (obj is None or is_above(request.user, obj))

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

    @admin.action(description=_("Remove the second factor of the selected accounts"), permissions=["change"])
    def remove_second_factor(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """For whoever lost phone and recovery codes: the password alone opens the account until they set it up anew."""
        changed = [user for user in queryset if self.has_change_permission(request, user)]
        for user in changed:
            if Authenticator.objects.filter(user=user).delete()[0]:
                self.log_change(request, user, [{"changed": {"fields": ["Second factor"]}}])
        text = ngettext("%d account was changed.", "%d accounts were changed.", len(changed)) % len(changed)
        self.message_user(request, text, messages.SUCCESS)


_HELP = {
    "username": _("Letters, digits and @ . + - _. People sign in with it or with their address."),
    "first_name": _("Shown instead of the user name."),
    "last_name": _("Shown instead of the user name."),
    "email": _("Where password resets and notices go. Whoever reads this mailbox can take the account over."),
}
