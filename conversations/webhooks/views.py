"""Pages of one's own webhooks: the list, and the log of each."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations.errors import ConversationError, NotFound
from conversations.models import Webhook
from conversations.views import signed_in
from conversations.webhooks import service

PER_PAGE = 50


class WebhookForm(forms.Form):
    url = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=1_000,
        widget=forms.URLInput(attrs={"placeholder": "https://…"}),
        help_text=gettext_lazy("Gets each event as POST with JSON, signed with a secret that you see once."),
    )
    events = forms.MultipleChoiceField(
        label=gettext_lazy("It is told when"),
        choices=Webhook.Event.choices,
        widget=forms.CheckboxSelectMultiple,
        initial=[Webhook.Event.RUN_FINISHED],
        error_messages={"required": gettext_lazy("Tick at least one.")},
    )

    def clean_url(self) -> str:
        try:
            return service.check_url(self.cleaned_data["url"])
        except ConversationError as error:
            raise forms.ValidationError(error.message) from None


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """The list; POST makes one, and its answer shows the secret, once."""
    user, form = signed_in(request), WebhookForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            webhook, secret = service.create(user, form.cleaned_data["url"], form.cleaned_data["events"])
        except ConversationError as error:
            form.add_error(None, error.message)
        else:
            return render(request, "chat/new_webhook.html", {"webhook": webhook, "secret": secret})
    hooks = [{"row": row, "events": _names(row)} for row in Webhook.objects.visible_to(user)]
    return render(request, "chat/webhooks.html", {"webhooks": hooks, "form": form})


@login_required
@require_safe
def log(request: HttpRequest, webhook_id: UUID) -> HttpResponse:
    webhook = _find(request, webhook_id)
    page = Paginator(webhook.deliveries.all(), PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "chat/webhook.html", {"webhook": webhook, "events": _names(webhook), "page": page})


@login_required
@require_POST
def act(request: HttpRequest, webhook_id: UUID, action: str) -> HttpResponse:
    """`action` is enable, disable, ping or delete."""
    user, webhook = signed_in(request), _find(request, webhook_id)
    if action == "delete":
        service.delete(user, webhook_id)
        messages.success(request, _("The webhook is deleted."))
        return redirect("chat:webhooks")
    if action in ("enable", "disable"):
        service.change(user, webhook_id, {"enabled": action == "enable"})
    elif action == "ping":
        _try(request, lambda: service.ping(user, webhook.pk))
    else:
        raise Http404
    return redirect("chat:webhook", webhook_id)


@login_required
@require_POST
def replay(request: HttpRequest, delivery_id: UUID) -> HttpResponse:
    delivery = _try(request, lambda: service.replay(signed_in(request), delivery_id))
    return redirect("chat:webhook", delivery.webhook_id) if delivery else redirect("chat:webhooks")


def _try(request: HttpRequest, send: Any) -> Any:
    try:
        delivery = send()
    except NotFound:
        raise Http404 from None
    except ConversationError as error:
        messages.error(request, error.message)
        return None
    messages.success(request, _("It is being sent. Reload the page to see what became of it."))
    return delivery


def _find(request: HttpRequest, webhook_id: UUID) -> Webhook:
    try:
        return service.find(signed_in(request), webhook_id)
    except NotFound:
        raise Http404 from None


def _names(webhook: Webhook) -> list[str]:
    return [str(event.label) for event in Webhook.Event if event in webhook.events]
