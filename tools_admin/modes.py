"""The ways in which an agent can work, and when each is the right one."""

from django.db.models import TextChoices
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Mode(TextChoices):
    AUTO = "auto", _("Automatic")
    DIRECT = "direct", _("Direct")
    REACT = "react", _("Step by step")
    REWOO = "rewoo", _("Plan all calls")
    PLAN_EXECUTE = "plan_execute", _("Goal by goal")
    DAG = "dag", _("Side by side")


# The order in which people are offered them, with one sentence each.
WHEN: dict[Mode, str | Promise] = {
    Mode.AUTO: _("The fitting way is chosen for each question, and the answer says which and why."),
    Mode.DIRECT: _("For a plain question or a fixed lookup: one answer, no thinking in between."),
    Mode.REACT: _("For questions where one result decides what to do next."),
    Mode.REWOO: _("For several lookups that are known from the start: planned once, done at the same time."),
    Mode.PLAN_EXECUTE: _("For a long goal: split into steps that are worked on one after the other."),
    Mode.DAG: _("For a goal with independent parts: worked on side by side, then judged."),
}


def offered() -> list[dict[str, str]]:
    """For the picker: value, label and sentence, in the language of the page."""
    return [{"value": str(mode), "label": str(mode.label), "when": str(when)} for mode, when in WHEN.items()]
