"""Invitations: made here, their link shown once or mailed."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import UnfoldAdminEmailInputWidget, UnfoldAdminIntegerFieldWidget

from accounts import invitations
from accounts.admin.groups import GroupsField
from accounts.models import Invitation, User
from accounts.roles import groups_within


class InvitationForm(forms.ModelForm):  # type: ignore[type-arg]
    groups = GroupsField()
    days = forms.IntegerField(
        label=_("Valid for"),
        min_value=1,
        max_value=90,
        initial=lambda: round(settings.INVITATION_DAYS),
        widget=UnfoldAdminIntegerFieldWidget(),
        help_text=_("Days. The link works once, and not after that."),
    )

    class Meta:
        model = Invitation
        fields = ("email", "groups")
        widgets = {"email": UnfoldAdminEmailInputWidget()}

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"]
        if email and User.objects.filter(email__iexact=email).exists():
            raise forms.ValidationError(_("An account has this address already."))
        return email


@admin.register(Invitation)
class InvitationAdmin(ModelAdmin):  # type: ignore[misc]
    form = InvitationForm
    list_display = ("__str__", "state", "group_names", "invited_by", "created_at", "expires_at", "used_by")
    list_filter = ("groups", "created_at")
    list_select_related = ("invited_by", "used_by")
    list_per_page = 50
    search_fields = ("email", "invited_by__username", "used_by__username")
    search_help_text = _("E-mail address or user name")
    actions = ("withdraw",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Invitation]:
        rows: QuerySet[Invitation] = super().get_queryset(request)
        return rows.prefetch_related("groups")

    @display(
        description=_("state"), label={"open": "info", "used": "success", "withdrawn": "danger", "expired": "warning"}
    )  # type: ignore[untyped-decorator]
    def state(self, row: Invitation) -> tuple[str, Any]:
        if row.used_at is not None:
            return "used", _("used")
        if row.withdrawn_at is not None:
            return "withdrawn", _("withdrawn")
        return ("expired", _("expired")) if row.expires_at <= timezone.now() else ("open", _("open"))

    @admin.display(description=_("groups"))
    def group_names(self, row: Invitation) -> str:
        return ", ".join(group.name for group in row.groups.all())

    def get_fields(self, request: HttpRequest, obj: Invitation | None = None) -> Sequence[str]:
        if obj is None:
            return ("email", "groups", "days")
        return ("email", "group_names", "state", "invited_by", "created_at", "expires_at", "used_at", "used_by")

    def get_form(self, request: HttpRequest, obj: Invitation | None = None, change: bool = False, **kwargs: Any) -> Any:
        made = super().get_form(request, obj, change=change, **kwargs)
        if isinstance(field := made.base_fields.get("groups"), GroupsField):
            assert isinstance(request.user, User)  # noqa: S101
            field.offer(groups_within(request.user), groups_within(request.user).none())
        return made

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        once = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().render_change_form(request, {**context, **once}, *args, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: Invitation | None = None) -> bool:
        """The list's action changes; a sent invitation itself stays what it was."""
        return super().has_change_permission(request, obj) and obj is None

    def has_delete_permission(self, request: HttpRequest, obj: Invitation | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Invitation, form: InvitationForm, change: bool) -> None:
        assert isinstance(request.user, User)  # noqa: S101
        data = form.cleaned_data
        made, path = invitations.invite(request.user, data["groups"], data["email"], data["days"])
        vars(obj).update(vars(made) | {"link_to_show_once": request.build_absolute_uri(path)})

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """The service has written the groups."""

    def response_add(self, request: HttpRequest, obj: Invitation, post_url_continue: str | None = None) -> HttpResponse:
        """Shows the link in this one response, and nowhere else: no message, session or log ever holds it."""
        link = vars(obj).pop("link_to_show_once")
        sent = False
        if obj.email:
            try:
                invitations.mail(obj, link)
                sent = True
            except OSError:
                text = _("The mail could not be sent. Hand the link over yourself, and look at EMAIL_URL.")
                self.message_user(request, text, messages.ERROR)
        context = {
            **self.admin_site.each_context(request),
            "title": _("The new invitation"),
            "opts": self.opts,
            "invitation": obj,
            "link": link,
            "sent": sent,
            "printed": settings.EMAIL_BACKEND.endswith("console.EmailBackend"),
        }
        response = TemplateResponse(request, "admin/accounts/invitation/created.html", context)
        response["Cache-Control"] = "no-store"
        return response

    @admin.action(description=_("Withdraw the selected invitations"), permissions=["change"])
    def withdraw(self, request: HttpRequest, queryset: QuerySet[Invitation]) -> None:
        for row in queryset.filter(used_at=None, withdrawn_at=None):
            invitations.withdraw(row)
            self.log_change(request, row, "Withdrawn.")
        self.message_user(request, _("The selected invitations no longer work."), messages.SUCCESS)
