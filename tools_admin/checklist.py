"""The admin's first page: what is still to be set up, until nothing is."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from tools_admin.models import LanguageModel, Provider


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    hint: str
    done: bool
    link: str = ""


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Called by the admin's index page (`UNFOLD["DASHBOARD_CALLBACK"]`)."""
    steps = _steps() if request.user.is_superuser else []
    menu = [
        (group["title"], [item for item in group["items"] if item["has_permission"]])
        for group in context["sidebar_navigation"]
    ]
    return {
        **context,
        "steps": [] if all(step.done for step in steps) else steps,
        "pages": [(title, items) for title, items in menu if items],
    }


def _steps() -> list[Step]:
    own_model = LanguageModel.objects.usable().exclude(provider__source=Provider.Source.DEMO).exists()
    mail = settings.EMAIL_BACKEND != "django.core.mail.backends.console.EmailBackend"
    return [
        Step(
            _("Connect a model"),
            _("Any OpenAI-compatible endpoint: add its provider, then a model. The demo model is for a first look."),
            own_model,
            reverse("admin:tools_admin_provider_add"),
        ),
        Step(
            _("Add your team"),
            _("Sign-up is closed: accounts are made here."),
            User.objects.filter(is_active=True).count() > 1,
            reverse("admin:accounts_user_add"),
        ),
        Step(
            _("Let it send mail"),
            _("Set EMAIL_URL, so that people can reset their own passwords. Until then mail is printed to the log."),
            mail,
        ),
    ]
