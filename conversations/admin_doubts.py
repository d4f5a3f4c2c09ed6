"""Calls of which nobody saw the end, in the admin: a list for holders of `approve`, and a form that settles one.

The form does what page and API do (`reconciliation.resolve`). It shows what was asked of the tool, so each look at
somebody else's call is recorded.
"""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.db.models.fields.json import KT
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextareaWidget

from accounts.models import User
from accounts.roles import APPROVE
from conversations.errors import ConversationError
from conversations.inspections import record_inspection
from conversations.models import Call, Doubt, Settlement
from conversations.reconciliation import resolve


class SettlementForm(forms.Form):
    outcome = forms.ChoiceField(
        label=_("What became of it?"),
        choices=Settlement.Outcome.choices,
        widget=UnfoldAdminRadioSelectWidget(),
        help_text=_("Look in the system that the tool writes to before you answer."),
    )
    result = forms.CharField(
        label=_("Result"),
        required=False,
        max_length=50_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
        help_text=_("What the agent is told, such as the number of the ticket. May stay empty."),
    )


@admin.register(Doubt)
class DoubtAdmin(ModelAdmin):  # type: ignore[misc]
    list_display = ("started_at", "tool", "owner", "key")
    list_display_links = ("started_at", "tool")
    list_select_related = ("run__user",)
    list_per_page = 50
    ordering = ("started_at",)
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Doubt]:
        doubts: QuerySet[Doubt] = super().get_queryset(request)
        waiting = doubts.filter(pk__in=Call.objects.in_doubt())
        return waiting.annotate(tool_name=KT("request__name")).defer("request", "result", "error")

    @admin.display(description=_("tool"))
    def tool(self, doubt: Doubt) -> str:
        return str(vars(doubt)["tool_name"] or "")

    @admin.display(description=_("whose run"), ordering="run__user__username")
    def owner(self, doubt: Doubt) -> str:
        return doubt.run.user.get_username()

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(APPROVE)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(APPROVE)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(APPROVE)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """No filters: `?request__contains=…` would read content without a trace."""
        return False

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form; after the answer the run goes on."""
        doubt = self.get_object(request, unquote(object_id)) if self.has_change_permission(request) else None
        if doubt is None or not isinstance(request.user, User):
            raise Http404
        form = SettlementForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            return self._settle(request, request.user, doubt, form.cleaned_data)
        record_inspection(doubt.run, request.user)
        context = {
            **self.admin_site.each_context(request),
            "title": _("What became of this call?"),
            "opts": self.opts,
            "doubt": doubt,
            "form": form,
        }
        return TemplateResponse(request, "admin/conversations/doubt/settle.html", context)

    def _settle(self, request: HttpRequest, user: User, doubt: Doubt, said: dict[str, str]) -> HttpResponse:
        try:
            resolve(user, doubt.run_id, doubt.key, said["outcome"], said["result"])
        except ConversationError as error:
            self.message_user(request, error.message, messages.ERROR)
        else:
            self.message_user(request, _("Settled; the run goes on."), messages.SUCCESS)
        return redirect("admin:conversations_doubt_changelist")
