"""Groups: what their members may do, and everything that is granted to them, on one page."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.db.models import Count, ManyToManyField, Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.roles import CONFIGURE, PERMISSIONS, groups_within, permissions_called, words_for


class PermissionsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """The permissions that open something, as a list to tick. Django makes four for every table, used or not."""

    def __init__(self) -> None:
        super().__init__(
            permissions_called(PERMISSIONS),
            required=False,
            widget=UnfoldAdminCheckboxSelectMultipleWidget(),
            label=_("Permissions"),
            help_text=_("What the members may do besides chatting. Pages of the admin show what these open."),
        )

    def label_from_instance(self, obj: Any) -> str:
        return words_for(obj)


class GroupsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Groups to tick. What the giver may not hand out stays as it is: `offer` says what that is."""

    def __init__(self) -> None:
        super().__init__(
            Group.objects.all(),
            required=False,
            widget=UnfoldAdminCheckboxSelectMultipleWidget(),
            label=_("Groups"),
            help_text=_(
                "Groups give rights, models, agents, tools and knowledge. Listed are those that you may hand out."
            ),
        )
        self.kept: list[Group] = []

    def offer(self, within: QuerySet[Group], held: QuerySet[Group]) -> None:
        self.queryset = within
        self.kept = list(held.exclude(pk__in=within.values("pk")))

    def clean(self, value: Any) -> Any:
        chosen = super().clean(value)
        return [*chosen, *self.kept]


def grants() -> Iterator[tuple[str, "ManyToManyField[Any, Any]"]]:
    """Every field by which something is granted to groups: name in the form, and the field of the granted model.

    The models come from apps above this one; they are found by their pointing here and by having `visible_to`.
    """
    for relation in Group._meta.related_objects:
        field = relation.remote_field
        if isinstance(field, ManyToManyField) and hasattr(field.model._default_manager, "visible_to"):
            yield f"{relation.related_model._meta.model_name}_{field.name}", field


class GroupForm(forms.ModelForm):  # type: ignore[type-arg]
    """A group with its rights and grants. Saving writes the granted models' own fields."""

    permissions = PermissionsField()

    class Meta:
        model = Group
        fields = ("name", "permissions")
        help_texts = {"name": _("Such as a team or a role.")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in grants():
            if name in self.fields and self.instance.pk:
                self.initial[name] = list(_granted(field, self.instance).values_list("pk", flat=True))

    def clean_permissions(self) -> list[Permission]:
        """What is not offered here, such as the right that editors of agents get with them, stays."""
        offered = self.fields["permissions"].queryset  # type: ignore[attr-defined]
        others = self.instance.permissions.exclude(pk__in=offered.values("pk")) if self.instance.pk else ()
        return [*self.cleaned_data["permissions"], *others]

    def _save_m2m(self) -> None:
        super()._save_m2m()  # type: ignore[misc]
        for name, field in grants():
            if name not in self.cleaned_data:
                continue
            before, after = set(_granted(field, self.instance)), set(self.cleaned_data[name])
            for row in before - after:
                getattr(row, field.name).remove(self.instance)
            for row in after - before:
                getattr(row, field.name).add(self.instance)


class GrantField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Rows of one kind, as a list to tick. A row that no group is granted is everybody's, and says so."""

    def __init__(self, field: "ManyToManyField[Any, Any]") -> None:
        self.field_name = field.name
        names = field.model._meta.verbose_name_plural
        super().__init__(
            field.model._default_manager.annotate(group_count=Count(field.name)),
            required=False,
            widget=UnfoldAdminCheckboxSelectMultipleWidget(),
            label=capfirst(str(names if field.name == "groups" else f"{names}: {field.verbose_name}")),
            help_text=field.help_text or _("What no group is granted is open to everybody."),
        )

    def label_from_instance(self, obj: Any) -> str:
        return (
            str(obj) + " (" + _("open to everybody") + ")"
            if self.field_name == "groups" and not obj.group_count
            else str(obj)
        )


def _granted(field: "ManyToManyField[Any, Any]", group: Group) -> QuerySet[Model]:
    return field.model._default_manager.filter(**{field.name: group})


def only_granted_to(groups: QuerySet[Group]) -> list[str]:
    """What would be open to everybody without these groups."""
    others = Group.objects.exclude(pk__in=groups)
    opened = []
    for _name, field in grants():
        if field.name == "groups":
            rows = field.model._default_manager.filter(groups__in=groups).exclude(groups__in=others).distinct()
            opened += [f"{capfirst(field.model._meta.verbose_name)}: {row}" for row in rows]
    return opened


@admin.register(Group)
class GroupAdmin(ModelAdmin):  # type: ignore[misc]
    form = GroupForm
    list_display = ("name", "members", "rights")
    search_fields = ("name",)
    ordering = ("name",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        groups: QuerySet[Group] = super().get_queryset(request)
        return groups.prefetch_related("permissions__content_type").annotate(
            member_count=Count("user", filter=Q(user__is_active=True), distinct=True)
        )

    @admin.display(description=_("members"), ordering="member_count")
    def members(self, group: Group) -> int:
        return int(vars(group).get("member_count", 0))

    @admin.display(description=_("may"))
    def rights(self, group: Group) -> str:
        return " · ".join(words_for(permission) for permission in group.permissions.all())

    def get_fieldsets(self, request: HttpRequest, obj: Group | None = None) -> Any:
        granted = [name for name, _field in self._grants(request)]
        own = [(None, {"fields": ("name", "permissions")})]
        return [*own, (_("Granted to this group"), {"fields": granted})] if granted else own

    @staticmethod
    def _grants(request: HttpRequest) -> "list[tuple[str, ManyToManyField[Any, Any]]]":
        """Granting is configuring: who only manages people puts them into groups."""
        return list(grants()) if request.user.has_perm(CONFIGURE) else []

    def get_form(self, request: HttpRequest, obj: Group | None = None, change: bool = False, **kwargs: Any) -> Any:
        fields: dict[str, Any] = {name: GrantField(field) for name, field in self._grants(request)}
        fields |= dict.fromkeys(self.get_readonly_fields(request, obj))  # None takes a field out
        kwargs["form"] = type("GroupForm", (GroupForm,), fields)
        return super().get_form(request, obj, change=change, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Group | None = None) -> Any:
        return () if request.user.is_superuser else ("permissions",)

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_change_permission(request, obj) and self._within(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_delete_permission(request, obj) and self._within(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What is granted to nobody is everybody's: a group whose end would open something has to stay."""
        to_delete, counts, needed, protected = super().get_deleted_objects(objs, request)
        groups = Group.objects.filter(pk__in=[group.pk for group in objs])
        return to_delete, counts, needed, [*protected, *only_granted_to(groups)]

    @staticmethod
    def _within(request: HttpRequest, obj: Group | None) -> bool:
        return obj is None or groups_within(request.user).filter(pk=obj.pk).exists()
