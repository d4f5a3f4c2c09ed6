"""Agents in the admin: who may edit one, every version of it, and the way back to one."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from unfold.admin import StackedInline
from unfold.decorators import action
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.models import User
from accounts.roles import CONFIGURE, EDIT_AGENTS
from tools_admin.admin_models import DefaultAdmin
from tools_admin.forms import AgentForm, ReadableJSONField
from tools_admin.models import Agent, AgentVersion, Workflow
from tools_admin.versions import compare_each, go_back, publish

RIGHTS = ("enabled", "is_default", "groups", "editors")
VERSIONS_PER_PAGE = 20


_JSON = {models.JSONField: {"form_class": ReadableJSONField, "widget": UnfoldAdminTextareaWidget}}


class WorkflowInline(StackedInline):  # type: ignore[misc]
    model = Workflow
    formfield_overrides = _JSON
    extra = 0
    autocomplete_fields = ("tool",)
    tab = True

    def has_view_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        """Workflows are part of their agent: its editors' too."""
        return request.user.has_perm(CONFIGURE) or request.user.has_perm(EDIT_AGENTS)

    has_add_permission = has_change_permission = has_delete_permission = has_view_permission


@admin.register(Agent)
class AgentAdmin(DefaultAdmin):
    form = AgentForm
    formfield_overrides = _JSON
    list_display = ("name", "description", "route", "model", "is_default", "enabled")
    list_filter = ("enabled",)
    list_select_related = ("model", "route")
    search_fields = ("name", "description")
    autocomplete_fields = ("route", "model", "tools", "connectors", "delegates", "publish_tool", "groups", "editors")
    inlines = (WorkflowInline,)
    actions_detail = ("versions",)
    fieldsets = (
        (None, {"fields": ("name", "icon", "description", "enabled", "is_default")}),
        (_("Behaviour"), {"fields": ("instructions", "mode", "route", "model")}),
        (_("Tools"), {"fields": ("tools", "connectors", "delegates")}),
        (_("First page and examples"), {"fields": ("starters", "examples")}),
        (
            _("Limits of a run"),
            {
                "fields": (
                    "max_iterations",
                    "max_model_calls",
                    "max_tool_calls",
                    "max_tokens",
                    "max_cost",
                    "max_seconds",
                )
            },
        ),
        (
            _("Publishing"),
            {"fields": ("evaluates", "sign_off", "output_schema", "publish_policy", "publish_tool")},
        ),
        (_("People"), {"fields": ("groups", "editors")}),
    )

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Agent]:
        agents: models.QuerySet[Agent] = super().get_queryset(request)
        return agents & Agent.objects.editable_by(_signed_in(request))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(CONFIGURE) or request.user.has_perm(EDIT_AGENTS)

    def has_view_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        """Of one agent: its row is found only by those who may edit it."""
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(CONFIGURE)

    def has_delete_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        return request.user.has_perm(CONFIGURE)

    def get_readonly_fields(self, request: HttpRequest, obj: Agent | None = None) -> Sequence[str]:
        return () if request.user.has_perm(CONFIGURE) else RIGHTS

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """With its tools stored the agent is what the form says: that is a version."""
        super().save_related(request, form, formsets, change)
        publish(form.instance.pk, _signed_in(request))

    @action(description=_("Versions"), url_path="versions")  # type: ignore[untyped-decorator]
    def versions(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """All versions with what each changed; a POST goes back to one."""
        agent = self.get_object(request, str(object_id))
        if agent is None:
            raise Http404
        if request.method == "POST":
            return self._go_back(request, agent)
        rows = AgentVersion.objects.filter(agent=agent).select_related("author")
        page = Paginator(rows, VERSIONS_PER_PAGE).get_page(request.GET.get("page"))
        shown = list(page)
        before = rows.filter(number__lt=shown[-1].number).first() if shown else None
        context = {
            **self.admin_site.each_context(request),
            "title": _("Versions of %(agent)s") % {"agent": agent},
            "opts": self.opts,
            "agent": agent,
            "page": page,
            "versions": zip(shown, compare_each([*shown, before]), strict=True),
            "back": reverse("admin:tools_admin_agent_change", args=[agent.pk]),
        }
        return TemplateResponse(request, "admin/tools_admin/agent/versions.html", context)

    def _go_back(self, request: HttpRequest, agent: Agent) -> HttpResponse:
        version = get_object_or_404(AgentVersion, agent=agent, number=_number(request.POST.get("version")))
        made = go_back(version, _signed_in(request))
        self.log_change(request, agent, str(made.note))
        text = _("The agent is what it was in version %(number)d.") % {"number": version.number}
        self.message_user(request, text, messages.SUCCESS)
        return redirect("admin:tools_admin_agent_versions", agent.pk)


def _signed_in(request: HttpRequest) -> User:
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 9 else 0
