"""Figures and states of runs and calls, in words."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agentapp.templatetags.frontend import icon
from conversations.models import Run
from conversations.presenters import duration, elapsed_seconds, grouped, model_label, tokens

register = template.Library()

# The icon and the word of each state of a run or a call: never a colour alone.
STATES = {
    "queued": ("clock", _("Queued")),
    "running": ("loader-circle", _("Running")),
    "started": ("loader-circle", _("Started")),
    "waiting": ("clock", _("Waiting for a person")),
    "completed": ("circle-check", _("Completed")),
    "succeeded": ("circle-check", _("Succeeded")),
    "failed": ("circle-x", _("Failed")),
    "cancelled": ("circle-stop", _("Stopped")),
    "unknown": ("circle-help", _("Outcome unknown")),
}


@register.simple_tag
def state(value: str) -> SafeString:
    name, word = STATES[value]
    return format_html('<span class="state" data-state="{}">{}{}</span>', value, icon(name), word)


@register.filter
def run_time(run: Run) -> str:
    return duration(elapsed_seconds(run))


@register.filter
def run_tokens(run: Run) -> str:
    count = tokens(run.usage)
    return grouped(count) if count else "–"


@register.filter
def run_model(run: Run) -> str:
    return model_label(run)
