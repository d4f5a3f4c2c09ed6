"""Comparisons of routes in the admin: start one, watch it, read it, put another one beside it, take it away."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe
from unfold.admin import ModelAdmin
from unfold.decorators import display

from accounts.roles import CONFIGURE
from conversations.comparison import page
from conversations.comparison.export import as_csv, as_json
from conversations.comparison.forms import ComparisonForm
from conversations.comparison.services import request_stop
from conversations.models import Comparison, ComparisonAttempt

_COLOURS = {"queued": "info", "running": "info", "completed": "success", "failed": "danger", "stopped": "warning"}
_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


@admin.register(Comparison)
class ComparisonAdmin(ModelAdmin):  # type: ignore[misc]
    form = ComparisonForm
    list_display = ("created_at", "name", "model_name", "agent", "state", "user")
    list_display_links = ("created_at", "name")
    list_filter = ("status",)
    list_select_related = ("agent", "user")
    list_per_page = 50
    search_fields = ("name", "model_name", "user__username")
    search_help_text = _("Task set, model, or a user name")
    fieldsets = (
        (None, {"fields": ("task_file", "chosen_routes", "repeats")}),
        (_("By whom"), {"fields": ("agent", "model", "scripted")}),
        (_("Under which conditions"), {"fields": ("faults", "tokens", "seconds")}),
    )
    actions = None

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(CONFIGURE)

    has_add_permission = has_module_permission

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(CONFIGURE)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Comparison]:
        rows: QuerySet[Comparison] = super().get_queryset(request)
        return rows.defer("tasks")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        made = super().get_form(request, obj, change=change, **kwargs)
        return type(made.__name__, (made,), {"user": request.user})

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Comparison:
        """It has been started by the form."""
        started: Comparison = form.instance
        return started

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Nothing is left to save."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Nothing is related."""

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        buttons = {"show_save_and_add_another": False, "show_save_and_continue": False}
        answer: HttpResponse = super().add_view(request, form_url, {**(extra_context or {}), **buttons})
        return answer

    def response_add(self, request: HttpRequest, obj: Comparison, post_url_continue: Any = None) -> HttpResponse:
        self.message_user(request, _("It has been started."), messages.SUCCESS)
        return redirect("admin:conversations_comparison_change", obj.pk)

    def get_urls(self) -> list[Any]:
        site = self.admin_site.admin_view
        own = [
            path("<uuid:pk>/stop/", site(require_POST(self.stop)), name="conversations_comparison_stop"),
            path(
                "<uuid:pk>/export.<str:form>",
                site(require_safe(self.export)),
                name="conversations_comparison_export",
            ),
            path("attempts/<int:pk>/", site(require_safe(self.attempt)), name="conversations_comparison_attempt"),
        ]
        return own + list(super().get_urls())

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """What it came to so far, and `?beside=` another one of the same set."""
        comparison = self._found(request, unquote(object_id))
        others = Comparison.objects.filter(digest=comparison.digest).exclude(pk=comparison.pk).defer("tasks")[:50]
        wanted = request.GET.get("beside", "")
        beside = next((other for other in others if str(other.pk) == wanted), None)
        context = {
            **self.admin_site.each_context(request),
            "title": str(comparison),
            "opts": self.opts,
            "comparison": comparison,
            "others": others,
            "beside": beside,
            **page.results(comparison, beside),
        }
        return TemplateResponse(request, "admin/conversations/comparison/results.html", context)

    def attempt(self, request: HttpRequest, pk: int) -> HttpResponse:
        row = ComparisonAttempt.objects.select_related("comparison").filter(pk=pk).first()
        if row is None:
            raise Http404
        comparison = self._found(request, str(row.comparison_id))
        task = next((task for task in comparison.tasks if task["id"] == row.task), None)
        context = {
            **self.admin_site.each_context(request),
            "title": str(row),
            "opts": self.opts,
            "comparison": comparison,
            "attempt": row,
            "route": page.route_label(row.route),
            "task": task,
        }
        return TemplateResponse(request, "admin/conversations/comparison/attempt.html", context)

    def stop(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        comparison = self._found(request, str(pk))
        request_stop(comparison)
        self.message_user(request, _("It stops within seconds; what was done is kept."), messages.SUCCESS)
        return redirect("admin:conversations_comparison_change", comparison.pk)

    def export(self, request: HttpRequest, pk: UUID, form: str) -> HttpResponse:
        if form not in _TYPES:
            raise Http404
        comparison = self._found(request, str(pk))
        text = as_csv(comparison) if form == "csv" else as_json(comparison)
        answer = HttpResponse(text, content_type=_TYPES[form])
        answer["Content-Disposition"] = f'attachment; filename="comparison-{comparison.created_at:%Y-%m-%d}.{form}"'
        return answer

    @display(description=_("status"), ordering="status", label=_COLOURS)  # type: ignore[untyped-decorator]
    def state(self, comparison: Comparison) -> tuple[str, str]:
        return comparison.status, comparison.get_status_display()

    def _found(self, request: HttpRequest, pk: str) -> Comparison:
        try:
            wanted = UUID(pk)
        except ValueError:
            raise Http404 from None
        rows = Comparison.objects.visible_to(request.user) if request.user.is_authenticated else None
        found = rows.select_related("agent", "agent_version", "user").filter(pk=wanted).first() if rows else None
        if found is None:
            raise Http404
        return found
