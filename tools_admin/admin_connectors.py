"""Connectors in the admin: add one by its kind, check it, choose its tools."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin, StackedInline

from tools_admin import credentials
from tools_admin.choosing import Offer, choose, offers
from tools_admin.connector_forms import AuthSchemeForm, ConnectorForm
from tools_admin.connectors.kinds import KINDS
from tools_admin.models import AuthScheme, Connector

# So many operations are listed at once; a search finds the others.
MOST_LISTED = 200


class AuthSchemeInline(StackedInline):  # type: ignore[misc]
    model = AuthScheme
    form = AuthSchemeForm
    extra = 0
    readonly_fields = ("secret_state", "redirect_address")
    fields = (
        ("name", "type"),
        ("username", "new_secret"),
        ("secret_state", "clear_secret"),
        ("place", "parameter"),
        ("client_id", "scopes"),
        ("authorize_url", "token_url"),
        "redirect_address",
        ("per_user", "shared_fallback"),
    )

    @admin.display(description=_("shared secret"))
    def secret_state(self, scheme: AuthScheme) -> Any:
        shared = scheme.credentials.filter(user=None).first() if scheme.pk else None
        if shared is None:
            return _("not set")
        return _("set") if shared.binding == scheme.binding else _("set for another address; enter it anew")

    @admin.display(description=_("redirect address"))
    def redirect_address(self, scheme: AuthScheme) -> Any:
        """What the system has to know of us, for the flow in which a person agrees."""
        if not scheme.pk:
            return _("shown when it is saved")
        return f"{settings.PUBLIC_URL}{reverse('connection_callback', args=[scheme.pk])}"


@admin.register(Connector)
class ConnectorAdmin(ModelAdmin):  # type: ignore[misc]
    list_display = ("name", "kind_label", "address", "tool_count", "health", "enabled")
    list_filter = ("enabled", "kind")
    search_fields = ("name",)
    inlines = (AuthSchemeInline,)
    change_form_template = "admin/connectors/change_form.html"

    @admin.display(description=_("kind"), ordering="kind")
    def kind_label(self, connector: Connector) -> Any:
        return KINDS[connector.kind].label if connector.kind in KINDS else connector.kind

    @admin.display(description=_("address"))
    def address(self, connector: Connector) -> str:
        return str(connector.settings.get("base_url", ""))

    @admin.display(description=_("tools"))
    def tool_count(self, connector: Connector) -> int:
        return int(getattr(connector, "number_of_tools", 0))

    @admin.display(description=_("state"))
    def health(self, connector: Connector) -> Any:
        if connector.is_paused:
            return _("paused after failures: %s") % connector.last_error[:100]
        return connector.last_error[:100] or _("good")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(number_of_tools=Count("tools"))

    # Forms: the kind decides ------------------------------------------------------------------------------------------

    def _kind(self, request: HttpRequest, obj: Connector | None) -> str:
        return obj.kind if obj else str(request.GET.get("kind", ""))

    def get_form(self, request: HttpRequest, obj: Connector | None = None, change: bool = False, **kwargs: Any) -> Any:
        kind = KINDS.get(self._kind(request, obj))
        if kind and kind.form:
            kwargs["form"] = kind.load_form()
        return super().get_form(request, obj, change=change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Connector | None = None) -> Any:
        kind = KINDS.get(self._kind(request, obj))
        if not kind or not kind.form:
            return [(None, {"fields": ("name", "enabled")})]
        form = kind.load_form()
        return [
            (None, {"fields": ("name", *form.own_fields(), "inner", "enabled")}),
            (_("More"), {"fields": ("prefix", "timeout"), "classes": ("collapse",)}),
        ]

    def get_inlines(self, request: HttpRequest, obj: Connector | None) -> Any:
        kind = KINDS.get(self._kind(request, obj))
        return self.inlines if kind and kind.form and kind.signs_in else ()

    def has_delete_permission(self, request: HttpRequest, obj: Connector | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or obj.kind != "builtin")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        if request.GET.get("kind") in [name for name, kind in KINDS.items() if kind.form]:
            page: HttpResponse = super().add_view(request, form_url, extra_context)
            return page
        if not self.has_add_permission(request):
            raise PermissionDenied
        kinds = [(name, kind) for name, kind in KINDS.items() if kind.form]
        return self._page(request, "kinds", _("What do you want to connect?"), kinds=kinds)

    def save_model(self, request: HttpRequest, obj: Connector, form: Any, change: bool) -> None:
        if not change:
            obj.kind = str(request.GET["kind"])
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        connector: Connector = form.instance
        for formset in formsets:
            for scheme_form in formset.initial_forms + formset.extra_forms:
                if scheme_form.instance.pk and scheme_form not in formset.deleted_forms and scheme_form.has_changed():
                    scheme_form.instance.connector = connector
                    scheme_form.store_secret()
        if isinstance(form, ConnectorForm):
            for note in form.after_save():
                self.message_user(request, note, messages.WARNING)
        if dropped := credentials.drop_unbound(connector):
            text = ngettext(
                "%d credential was removed, because it was made for another address. Enter it anew if it is the same.",
                "%d credentials were removed, because they were made for another address. Enter them anew.",
                dropped,
            )
            self.message_user(request, text % dropped, messages.WARNING)
            self.log_change(request, connector, f"{dropped} credentials removed: the address changed.")

    def response_add(self, request: HttpRequest, obj: Connector, post_url_continue: str | None = None) -> HttpResponse:
        """On to its tools, unless another button was pressed."""
        if "_save" in request.POST:
            return HttpResponseRedirect(self._url("tools", obj.pk))
        answer: HttpResponse = super().response_add(request, obj, post_url_continue)
        return answer

    # Pages of their own -----------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<int:pk>/check/", view(self.check_page), name="tools_admin_connector_check"),
            path("<int:pk>/tools/", view(self.tools_page), name="tools_admin_connector_tools"),
            *super().get_urls(),
        ]

    def _url(self, page: str, pk: int) -> str:
        return reverse(f"admin:tools_admin_connector_{page}", args=[pk])

    def _page(self, request: HttpRequest, name: str, title: Any, **context: Any) -> TemplateResponse:
        shared = {**self.admin_site.each_context(request), "title": title, "opts": self.opts}
        return TemplateResponse(request, f"admin/connectors/{name}.html", {**shared, **context})

    def _connector(self, request: HttpRequest, pk: int) -> Connector:
        connector = get_object_or_404(Connector, pk=pk)
        if not self.has_change_permission(request, connector):
            raise PermissionDenied
        return connector

    def check_page(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Asks the system; the exact error is shown to whoever configures it."""
        connector = self._connector(request, pk)
        if request.method == "POST":
            from tools_admin.asking import check

            found = async_to_sync(check)(connector, request.user.pk)
            if found.wants_sign_in and connector.kind == "mcp":
                self._set_up_sign_in(request, connector)
            else:
                self.message_user(request, found.text, messages.SUCCESS if found.good else messages.ERROR)
        return HttpResponseRedirect(self._url("change", pk))

    def _set_up_sign_in(self, request: HttpRequest, connector: Connector) -> None:
        """As the server itself says, so that people need only agree."""
        from tools_admin.connectors.base import ConnectorError, ToolError
        from tools_admin.sign_in_discovery import set_up
        from tools_admin.views import redirect_uri

        address = partial(redirect_uri, request)
        try:
            scheme = async_to_sync(set_up)(connector, address)
        except (ConnectorError, ToolError) as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        self.log_change(request, connector, "Sign-in set up as the server says.")
        if not scheme.client_id:
            text = _(
                "It asks for a sign-in, which is set up but for the client ID: register %s there as redirect address."
            )
            self.message_user(request, text % address(scheme), messages.WARNING)
            return
        text = _("It asks for a sign-in, which is set up now: each person connects their own account.")
        link = format_html('{} <a class="underline" href="{}">{}</a>', text, reverse("connections"), _("Connect yours"))
        self.message_user(request, link, messages.SUCCESS)

    def tools_page(self, request: HttpRequest, pk: int) -> HttpResponse:
        """What the source offers now, beside what was chosen before."""
        from tools_admin.asking import discover

        connector = self._connector(request, pk)
        found = async_to_sync(discover)(connector, request.user.pk)
        if request.method == "POST" and found.good:
            choose(connector, found.specs, request.POST.getlist("wanted"), request.POST.getlist("shown"))
            self.log_change(request, connector, "Tools chosen.")
            count = connector.tools.count()
            text = ngettext("%d tool is chosen.", "%d tools are chosen.", count) % count
            self.message_user(request, text, messages.SUCCESS)
            return HttpResponseRedirect(request.get_full_path())
        query, tag = request.GET.get("q", "").strip(), request.GET.get("tag", "")
        # A source that does not answer must not look as if all its tools were gone.
        everything = (
            offers(connector, found.specs)
            if found.good
            else [Offer(tool.key, None, tool) for tool in connector.tools.all()]
        )
        matching = [offer for offer in everything if _matches(offer, query, tag)]
        return self._page(
            request,
            "tools",
            _("Tools of %s") % connector.name,
            connector=connector,
            found=found,
            offers=matching[:MOST_LISTED],
            left_out=max(0, len(matching) - MOST_LISTED),
            total=len(everything),
            tags=sorted({name for offer in everything if offer.spec for name in offer.spec.tags}),
            query=query,
            tag=tag,
            by_hand=connector.kind == "http",
            add_query=f"?connector={connector.pk}",
        )


def _matches(offer: Offer, query: str, tag: str) -> bool:
    text = " ".join([offer.key, *([offer.spec.name, offer.spec.description] if offer.spec else [])]).lower()
    tags: Sequence[str] = offer.spec.tags if offer.spec else ()
    return all(word in text for word in query.lower().split()) and (not tag or tag in tags)
