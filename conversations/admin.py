"""The record, for holders of `view_all_runs`: lists of what happened, without content, and nothing to change.

What was asked and answered is on the run's own page, where each look at somebody else's run is recorded. So there are
no detail pages here, and filters reach only what the lists show.
"""

from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db.models import F, QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter, RangeDateFilter, RelatedDropdownFilter
from unfold.decorators import display

import conversations.admin_doubts
import conversations.admin_webhooks
import conversations.comparison.admin  # noqa: F401 - all register themselves
from conversations.models import Call, Inspection, Run, Settlement

_COLOURS = {
    "queued": "info",
    "running": "info",
    "waiting": "warning",
    "completed": "success",
    "failed": "danger",
    "cancelled": "warning",
    "started": "info",
    "succeeded": "success",
    "unknown": "danger",
}


class DaysFilter(RangeDateFilter):  # type: ignore[misc]
    """From one day to another, both included, in the site's time zone. What is no date does not filter."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if first := self._day("from"):
            queryset = queryset.filter(**{f"{self.field_path}__gte": first})
        if last := self._day("to"):
            queryset = queryset.filter(**{f"{self.field_path}__lt": last + timedelta(days=1)})
        return queryset

    def _day(self, end: str) -> datetime | None:
        try:
            day = forms.DateField(required=False).clean(self.used_parameters.get(f"{self.field_path}_{end}"))
        except ValidationError:
            return None
        return timezone.make_aware(datetime.combine(day, time.min)) if day else None


class RecordAdmin(ModelAdmin):  # type: ignore[misc]
    """A list that nobody can add to, change or delete from; a row leads to the page of its run."""

    permission = "conversations.view_all_runs"
    list_per_page = 50
    list_filter_submit = True
    actions = None

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(self.permission)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Only the filters on the page: `?answer__contains=…` would read content without a trace."""
        fields = [entry if isinstance(entry, str) else entry[0] for entry in self.list_filter]
        endings = ("__exact", "__id__exact", "__isnull", "_from", "_to")
        return lookup in {f"{field}{ending}" for field in fields for ending in endings}

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        row = self.get_object(request, unquote(object_id)) if self.has_view_permission(request) else None
        if row is None:
            raise Http404
        return redirect("chat:run", row.pk if isinstance(row, Run) else row.run_id)


@admin.register(Run)
class RunAdmin(RecordAdmin):
    list_display = ("created_at", "user", "agent", "state", "reason", "model_name", "seconds", "tokens_used")
    list_filter = (
        "status",
        ("user", AutocompleteSelectFilter),
        ("agent", RelatedDropdownFilter),
        ("created_at", DaysFilter),
    )
    list_select_related = ("user", "agent")
    search_fields = ("id__startswith", "user__username")
    search_help_text = _("Beginning of a run's id, or a user name")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        runs: QuerySet[Run] = super().get_queryset(request)
        return runs.defer("answer", "error")

    @display(description=_("status"), ordering="status", label=_COLOURS)  # type: ignore[untyped-decorator]
    def state(self, run: Run) -> tuple[str, str]:
        return run.status, run.get_status_display()

    @admin.display(description=_("model"))
    def model_name(self, run: Run) -> str:
        return str(run.model.get("name") or "")

    @admin.display(description=_("seconds"), ordering=F("ended_at") - F("started_at"))
    def seconds(self, run: Run) -> str:
        return _seconds(run)

    @admin.display(description=_("tokens"))
    def tokens_used(self, run: Run) -> int:
        return int(run.usage.get("input_tokens") or 0) + int(run.usage.get("output_tokens") or 0)


@admin.register(Call)
class CallAdmin(RecordAdmin):
    list_display = ("started_at", "key", "kind", "target", "state_label", "seconds", "user", "run_id")
    list_filter = ("kind", "state", ("run__user", AutocompleteSelectFilter), ("started_at", DaysFilter))
    list_select_related = ("run__user",)
    ordering = ("-id",)
    search_fields = ("run__id__startswith", "run__user__username")
    search_help_text = _("Beginning of a run's id, or a user name")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Call]:
        # Requests and results are large and are content: the database hands out only the name in them.
        named = Coalesce(KT("request__name"), KT("request__model"))
        calls: QuerySet[Call] = super().get_queryset(request)
        return calls.annotate(target_name=named).defer("request", "result", "error", "run__answer", "run__error")

    @admin.display(description=_("tool or model"))
    def target(self, call: Call) -> str:
        return str(vars(call)["target_name"] or "")

    @display(description=_("state"), ordering="state", label=_COLOURS)  # type: ignore[untyped-decorator]
    def state_label(self, call: Call) -> tuple[str, str]:
        return call.state, call.get_state_display()

    @admin.display(description=_("seconds"), ordering=F("ended_at") - F("started_at"))
    def seconds(self, call: Call) -> str:
        return _seconds(call)

    @admin.display(description=_("user"), ordering="run__user__username")
    def user(self, call: Call) -> str:
        return call.run.user.get_username()


@admin.register(Inspection)
class InspectionAdmin(RecordAdmin):
    """Who looked at whose run."""

    permission = "conversations.view_inspection"
    list_display = ("at", "user", "owner", "run_id")
    list_filter = (("user", AutocompleteSelectFilter), ("at", DaysFilter))
    list_select_related = ("user", "run__user")
    search_fields = ("user__username", "run__user__username")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Inspection]:
        looks: QuerySet[Inspection] = super().get_queryset(request)
        return looks.defer("run__answer", "run__error")

    @admin.display(description=_("whose run"), ordering="run__user__username")
    def owner(self, inspection: Inspection) -> str:
        return inspection.run.user.get_username()


@admin.register(Settlement)
class SettlementAdmin(RecordAdmin):
    """Who said what became of a call."""

    list_display = ("at", "user", "tool_name", "outcome", "owner", "run_id")
    list_filter = ("outcome", ("user", AutocompleteSelectFilter), ("at", DaysFilter))
    list_select_related = ("user", "run__user")
    search_fields = ("user__username", "run__user__username", "run__id__startswith")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Settlement]:
        settled: QuerySet[Settlement] = super().get_queryset(request)
        return settled.defer("result", "run__answer", "run__error")

    @admin.display(description=_("whose run"), ordering="run__user__username")
    def owner(self, settlement: Settlement) -> str:
        return settlement.run.user.get_username()


def _seconds(row: Run | Call) -> str:
    if row.started_at is None or row.ended_at is None:
        return ""
    return f"{(row.ended_at - row.started_at).total_seconds():.1f}"
