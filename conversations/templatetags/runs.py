"""Figures and states of runs and calls, in words."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agentapp.templatetags.frontend import icon
from conversations.models import Call, Run
from conversations.presenters import duration, elapsed_seconds, model_label, tokens

register = template.Library()

STATE_ICONS = {
    "queued": "clock",
    "running": "loader-circle",
    "started": "loader-circle",
    "waiting": "clock",
    "completed": "circle-check",
    "succeeded": "circle-check",
    "failed": "circle-x",
    "cancelled": "circle-stop",
    "unknown": "circle-help",
}


def _state(value: str, label: str) -> SafeString:
    return format_html('<span class="state" data-state="{}">{}{}</span>', value, icon(STATE_ICONS[value]), label)


@register.simple_tag
def run_state(run: Run) -> SafeString:
    return _state(run.status, run.get_status_display())


@register.simple_tag
def call_state(call: Call) -> SafeString:
    return _state(call.state, call.get_state_display())


@register.filter
def run_time(run: Run) -> str:
    return duration(elapsed_seconds(run))


@register.filter
def run_tokens(run: Run) -> str:
    count = tokens(run.usage)
    return f"{count:,}" if count else "–"


@register.filter
def run_model(run: Run) -> str:
    return model_label(run)
