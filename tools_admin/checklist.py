"""What is still to be set up, until nothing is. Each step is shown to whoever may do it."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.roles import CONFIGURE, MANAGE_PEOPLE
from tools_admin.models import LanguageModel, Provider


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    hint: str
    done: bool
    link: str
    permission: str = ""
    optional: bool = False


def checklist(request: HttpRequest, context: dict[str, Any], *, answered: bool) -> dict[str, Any]:
    """For the admin's index page: steps to go, and the pages by group. `answered`: an agent has answered already."""
    steps = [step for step in _steps(answered) if not step.permission or request.user.has_perm(step.permission)]
    needed = [step for step in steps if not step.optional]
    menu = [
        (group["title"], [item for item in group["items"] if item["has_permission"]])
        for group in context["sidebar_navigation"]
    ]
    return {
        "steps": [] if all(step.done for step in needed) else steps,
        "later": [step for step in steps if step.optional and not step.done],
        "pages": [(title, items) for title, items in menu if items],
    }


def _steps(answered: bool) -> list[Step]:
    own_model = LanguageModel.objects.usable().exclude(provider__source=Provider.Source.DEMO).exists()
    return [
        Step(
            _("Connect a model"),
            _("Any OpenAI-compatible endpoint: add its provider, then a model. The demo model is for a first look."),
            own_model,
            reverse("admin:tools_admin_provider_add"),
            CONFIGURE,
        ),
        Step(
            _("Let it send mail"),
            _("Set EMAIL_URL, so that people can reset their own passwords. Until then mail is printed to the log."),
            settings.EMAIL_BACKEND != "django.core.mail.backends.console.EmailBackend",
            reverse("admin_health"),
            CONFIGURE,
            optional=True,
        ),
        Step(
            _("Invite your team"),
            _("Sign-up is closed: an invitation is a link that makes one account, with the groups you choose."),
            User.objects.filter(is_active=True).count() > 1,
            reverse("admin:accounts_invitation_add"),
            MANAGE_PEOPLE,
            optional=True,
        ),
        Step(
            _("Ask a question"),
            _("In the chat; the agent answers with the model that you connected."),
            answered,
            reverse("chat:new"),
        ),
    ]
