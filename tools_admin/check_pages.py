"""The admin's page of a provider that says what its endpoint has and what its models can really do."""

from datetime import timedelta
from typing import Any, NamedTuple

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.formats import number_format
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tools_admin.checks import CHECK_SECONDS, MEASURED, add_models, ask_for_check
from tools_admin.models import LanguageModel, Provider


class CheckState(NamedTuple):
    """`kind` is none, running, failed or done."""

    kind: str
    text: str


def state_of(row: Provider | LanguageModel) -> CheckState:
    """The last check of a row in a sentence."""
    check = row.last_check
    if not check:
        return CheckState("none", _("not checked yet"))
    if check["state"] == "running":
        since = timezone.now() - (parse_datetime(check["asked_at"]) or timezone.now())
        if since > timedelta(seconds=CHECK_SECONDS):
            return CheckState("failed", _("no worker has finished the check; is one running?"))
        waits = since > timedelta(seconds=15) and "at" not in check
        return CheckState("running", _("waiting for a worker …") if waits else _("being checked …"))
    if error := check.get("error"):
        return CheckState("failed", error)
    at, seconds = parse_datetime(check["at"]) or timezone.now(), number_format(round(check["seconds"], 2), 2)
    if timezone.now() - at < timedelta(minutes=1):
        return CheckState("done", _("answered within %(seconds)s s, just now") % {"seconds": seconds})
    ago = timesince(at, depth=1)
    return CheckState("done", _("answered within %(seconds)s s, %(ago)s ago") % {"seconds": seconds, "ago": ago})


def grouped(count: int) -> str:
    return number_format(count, force_grouping=True)


class CheckPages:
    """For the admin of providers."""

    admin_site: Any
    opts: Any

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.check_view)
        own = [path("<path:object_id>/check/", view, name="tools_admin_provider_check")]
        return own + super().get_urls()  # type: ignore[misc, no-any-return]

    def check_url(self, provider: Provider) -> str:
        return reverse("admin:tools_admin_provider_check", args=[provider.pk])

    def check_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        if not self.has_change_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        provider = self.get_object(request, object_id)  # type: ignore[attr-defined]
        if provider is None:
            raise Http404
        if request.method == "POST":
            return self._act(request, provider)
        return render(request, "admin/tools_admin/provider/check.html", self._context(request, provider))

    def start_check(self, provider: Provider, row: Provider | LanguageModel) -> HttpResponseRedirect:
        ask_for_check(row)
        return HttpResponseRedirect(self.check_url(provider))

    def _act(self, request: HttpRequest, provider: Provider) -> HttpResponseRedirect:
        match request.POST.get("action"):
            case "list":
                return self.start_check(provider, provider)
            case "check":
                chosen = provider.models.filter(pk=_number(request.POST.get("model"))).first()
                if chosen is not None:
                    return self.start_check(provider, chosen)
            case "add":
                self._add(request, provider)
        return HttpResponseRedirect(self.check_url(provider))

    def _add(self, request: HttpRequest, provider: Provider) -> None:
        names = [*request.POST.getlist("name"), request.POST.get("other", "")]
        wanted = [name.strip() for name in names if 0 < len(name.strip()) <= 200]
        if provider.is_locked or not wanted:
            messages.warning(request, _("Choose a model, or write its name."))
            return
        added = add_models(provider, wanted)
        for model in added:
            self.log_addition(request, model, [{"added": {}}])  # type: ignore[attr-defined]
        if any(model.is_default for model in added):
            messages.success(request, _("It answers by default from now on."))

    def _context(self, request: HttpRequest, provider: Provider) -> dict[str, Any]:
        models = list(provider.models.order_by("name"))
        state, known = state_of(provider), {model.name for model in models}
        offered = [
            {**found, "size": found["context_size"] and grouped(found["context_size"])}
            for found in provider.last_check.get("models", ())
            if found["id"] not in known
        ]
        rows = [_row(model) for model in models]
        return {
            **self.admin_site.each_context(request),
            "title": _("Check of %(provider)s") % {"provider": provider},
            "opts": self.opts,
            "provider": provider,
            "state": state,
            "offered": offered,
            "count": len(provider.last_check.get("models", ())),
            "rows": rows,
            "labels": [LanguageModel.ability_label(name) for name in MEASURED],
            "is_running": state.kind == "running" or any(row["state"].kind == "running" for row in rows),
            "is_usable": any(row["state"].kind == "done" and row["model"].enabled for row in rows),
            "summary": _summary(provider),
        }


def _summary(provider: Provider) -> str:
    count = len(provider.last_check.get("models", ()))
    return ngettext("It offers %d model.", "It offers %d models.", count) % count


def _row(model: LanguageModel) -> dict[str, Any]:
    found = model.last_check.get("abilities", {})
    return {
        "model": model,
        "state": state_of(model),
        "first_token": model.last_check.get("first_token"),
        "said": model.last_check.get("said", ""),
        "abilities": [found.get(name) for name in MEASURED],
        "problems": [
            (LanguageModel.ability_label(name), found[name]["said"])
            for name in MEASURED
            if name in found and found[name]["ok"] is not True
        ],
    }


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 18 else 0
