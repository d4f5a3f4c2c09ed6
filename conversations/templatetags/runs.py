"""Figures and states of runs and calls, in words."""

import json
from typing import Any

from django import template
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
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


@register.filter(name="bytes")
def in_bytes(size: int) -> str:
    """A file's size."""
    if size < 1_000:
        return f"{size} B"
    if size < 1_000_000:
        return f"{round(size / 1_000)} kB"
    return f"{number_format(round(size / 1_000_000, 1), 1)} MB"


@register.filter
def tool_words(name: str) -> str:
    """`send_mail` as a person would write it."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


@register.simple_tag
def arguments(values: dict[str, Any]) -> SafeString:
    """Named values, as they read without scripts."""
    rows = ((name, value if isinstance(value, str) else json.dumps(value)) for name, value in values.items())
    return format_html('<div class="value"><dl>{}</dl></div>', format_html_join("", "<dt>{}</dt><dd>{}</dd>", rows))


@register.filter
def run_time(run: Run) -> str:
    return duration(elapsed_seconds(run))


@register.filter
def run_tokens(run: Run) -> str:
    count = tokens(run.usage)
    return grouped(count) if count else "–"


@register.filter(name="grouped")
def grouped_number(count: int) -> str:
    return grouped(count)


@register.filter
def run_model(run: Run) -> str:
    return model_label(run)
