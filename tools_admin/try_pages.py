"""The admin's page that tries a route: which model would answer a question, and why not another one."""

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.utils.formats import number_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldAdminTimeWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.models import User
from tools_admin.errors import NoModel
from tools_admin.health import present_health
from tools_admin.models import Agent, LanguageModel, Route
from tools_admin.routing import Choice, Situation, choose

CHARS_PER_TOKEN = 4


class TryForm(forms.Form):
    question = forms.CharField(
        label=gettext_lazy("Question"),
        max_length=100_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        initial=gettext_lazy("What sold best last month?"),
    )
    person = forms.CharField(label=gettext_lazy("User name"), max_length=150, widget=UnfoldAdminTextInputWidget)
    tools = forms.BooleanField(
        label=gettext_lazy("with tools"), required=False, initial=True, widget=UnfoldBooleanSwitchWidget
    )
    images = forms.BooleanField(label=gettext_lazy("with images"), required=False, widget=UnfoldBooleanSwitchWidget)
    tokens = forms.IntegerField(
        label=gettext_lazy("Conversation before it"),
        help_text=gettext_lazy("Tokens."),
        required=False,
        min_value=0,
        max_value=100_000_000,
        widget=UnfoldAdminIntegerFieldWidget,
    )
    budget = forms.IntegerField(
        label=gettext_lazy("Budget left"),
        help_text=gettext_lazy("Per cent; empty means no budget."),
        required=False,
        min_value=0,
        max_value=100,
        widget=UnfoldAdminIntegerFieldWidget,
    )
    at = forms.TimeField(label=gettext_lazy("Time of day"), required=False, widget=UnfoldAdminTimeWidget)

    def clean_person(self) -> User:
        person = User.objects.filter(username=self.cleaned_data["person"], is_active=True).first()
        if person is None:
            raise forms.ValidationError(_("There is no such person, or their account is disabled."))
        return person

    def situation(self) -> Situation:
        given = self.cleaned_data
        tokens = (given["tokens"] or 0) + len(given["question"]) // CHARS_PER_TOKEN
        return Situation(
            tools=given["tools"],
            images=given["images"],
            tokens=lambda: tokens,
            budget_left=lambda: given["budget"],
            at=given["at"] or localtime().time(),
            paused={model for model, state in present_health().items() if state.is_open},
        )


class TryPages:
    """For the admin of routes."""

    admin_site: Any
    opts: Any

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.try_view)
        return [path("<path:object_id>/try/", view, name="tools_admin_route_try"), *super().get_urls()]  # type: ignore[misc]

    def try_url(self, route: Route) -> str:
        return reverse("admin:tools_admin_route_try", args=[route.pk])

    def try_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        if not self.has_view_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        route = self.get_object(request, object_id)  # type: ignore[attr-defined]
        if route is None:
            raise Http404
        form = TryForm(
            request.GET if "question" in request.GET else None, initial={"person": request.user.get_username()}
        )
        context = {
            **self.admin_site.each_context(request),
            "title": _("Try the route %(route)s") % {"route": route},
            "opts": self.opts,
            "route": route,
            "form": form,
        }
        if form.is_valid():
            context |= _outcome(route, form.cleaned_data["person"], form.situation())
        return render(request, "admin/tools_admin/route/try.html", context)


def _outcome(route: Route, person: User, situation: Situation) -> dict[str, Any]:
    try:
        choice = choose(Agent(route=route), person, situation)
    except NoModel as error:
        return {"failure": str(error)}
    return {"choice": choice, "verdicts": _verdicts(choice), "joint": _joint(choice)}


def _verdicts(choice: Choice) -> list[tuple[LanguageModel, str]]:
    """Each model and what would become of it, the one that answers first."""
    why = dict(choice.passed)
    rows = [(choice.model, _("answers"))]
    for model in choice.models[1:]:
        text = _("stands in when the ones before it do not answer")
        rows.append((model, f"{text}; {why[model]}" if model in why else text))
    chosen = {model.pk for model in choice.models}
    return rows + [
        (model, _("is passed over: %(why)s") % {"why": text}) for model, text in choice.passed if model.pk not in chosen
    ]


def _joint(choice: Choice) -> dict[str, Any]:
    """What a run may use: what all models of the chain can, within the smallest context."""
    limiting = ("small",)
    names = [
        name
        for name in LanguageModel.ABILITIES
        if (any if name in limiting else all)(getattr(model, name) for model in choice.models)
    ]
    smallest = min(choice.models, key=lambda model: model.context_size)
    return {
        "abilities": ", ".join(map(LanguageModel.ability_label, names)),
        "context": number_format(smallest.context_size, force_grouping=True),
        "of": smallest,
    }
