"""Documents of collections in the admin: add many at once, see what became of them, have them read anew."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectMultipleWidget, UnfoldAdminSelectWidget

from accounts.money import shown_money
from tools_admin.documents.parsing import SUFFIXES
from tools_admin.knowledge.storing import NotTaken, add_document, embed_again, read_again
from tools_admin.models import Connector, EmbeddingUse, KnowledgeDocument, Passage

_LABELS = {"queued": "info", "reading": "info", "embedding": "info", "ready": "success", "failed": "danger"}


class ManyFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class ManyFilesField(forms.FileField):
    """Cleaned: a list of files."""

    widget = ManyFiles(attrs={"accept": ",".join(SUFFIXES), "multiple": True})

    def clean(self, data: Any, initial: Any = None) -> Any:
        files = data if isinstance(data, list | tuple) else [data]
        return [super(ManyFilesField, self).clean(file, initial) for file in files or [None]]


class UploadForm(forms.Form):
    collection = forms.ModelChoiceField(
        Connector.objects.filter(kind="knowledge"), label=_("Collection"), widget=UnfoldAdminSelectWidget()
    )
    groups = forms.ModelMultipleChoiceField(
        Group.objects.order_by("name"),
        label=_("Groups"),
        required=False,
        widget=UnfoldAdminSelectMultipleWidget(),
        help_text=_("Only these people find them; none means everybody of the collection."),
    )
    documents = ManyFilesField(
        label=_("Files"),
        max_length=1_000,
        allow_empty_file=True,  # told for each file, which does not keep the others out
        help_text=_("PDF, Word (.docx), HTML, Markdown, text, CSV; up to 50 MB each. They may be dropped here."),
    )


@admin.register(KnowledgeDocument)
class KnowledgeDocumentAdmin(ModelAdmin):  # type: ignore[misc]
    list_display = ("short_name", "collection", "whose", "state", "shown_size", "passages_made", "cost", "created_at")
    list_filter = ("status", "collection", "groups")
    list_select_related = ("collection", "owner")
    search_fields = ("name", "owner__username")
    autocomplete_fields = ("groups",)
    fields = ("name", "collection", "groups", "whose", "state", "explanation", "shown_size", "media_type")
    readonly_fields = ("collection", "whose", "state", "explanation", "shown_size", "media_type")
    actions = ("read_anew", "embed_anew")

    def get_queryset(self, request: HttpRequest) -> QuerySet[KnowledgeDocument]:
        rows: QuerySet[KnowledgeDocument] = super().get_queryset(request)
        of_row = {"document": OuterRef("pk")}
        passages = Passage.objects.filter(**of_row).order_by().values("document").annotate(n=Count("pk")).values("n")
        costs = EmbeddingUse.objects.filter(**of_row).order_by().values("document").annotate(n=Sum("cost")).values("n")
        return rows.annotate(passages_made=Subquery(passages), embedding_cost=Subquery(costs))

    @admin.display(description=_("name"), ordering="name")
    def short_name(self, row: KnowledgeDocument) -> str:
        return Truncator(row.name).chars(50)

    @admin.display(description=_("found by"), ordering="owner")
    def whose(self, row: KnowledgeDocument) -> Any:
        return row.owner or _("everybody who may")

    @display(description=_("state"), label=_LABELS, ordering="status")  # type: ignore[untyped-decorator]
    def state(self, row: KnowledgeDocument) -> tuple[str, str]:
        return row.status, row.get_status_display()

    @admin.display(description=_("why"))
    def explanation(self, row: KnowledgeDocument) -> str:
        return row.explanation or "–"

    @admin.display(description=_("size"), ordering="size")
    def shown_size(self, row: KnowledgeDocument) -> str:
        return filesizeformat(row.size)

    @admin.display(description=_("passages"), ordering="passages_made")
    def passages_made(self, row: Any) -> int:
        return row.passages_made or 0

    @admin.display(description=_("embedding cost"), ordering=F("embedding_cost"))
    def cost(self, row: Any) -> str:
        return shown_money(row.embedding_cost or 0)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """File by file: what is not taken does not keep the others out."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        initial = {"collection": request.GET.get("collection")}
        form = UploadForm(request.POST or None, request.FILES or None, initial=initial)
        if request.method == "POST" and form.is_valid():
            self._take(request, form.cleaned_data)
            return HttpResponseRedirect(reverse("admin:tools_admin_knowledgedocument_changelist"))
        context = {
            **self.admin_site.each_context(request),
            "title": _("Add documents"),
            "opts": self.opts,
            "form": form,
        }
        context["nothing"] = not Connector.objects.filter(kind="knowledge").exists()
        return TemplateResponse(request, "admin/documents/upload.html", context)

    def _take(self, request: HttpRequest, data: dict[str, Any]) -> None:
        taken = 0
        for file in data["documents"]:
            try:
                row = add_document(data["collection"], file, None, data["groups"])
            except NotTaken as error:
                self.message_user(request, f"{file.name}: {error}", messages.ERROR)
                continue
            self.log_addition(request, row, "Uploaded.")
            taken += 1
        if taken:
            text = ngettext("%d document is being read.", "%d documents are being read.", taken) % taken
            self.message_user(request, text, messages.SUCCESS)

    @admin.action(description=_("Read anew from the file"), permissions=["change"])
    def read_anew(self, request: HttpRequest, rows: QuerySet[KnowledgeDocument]) -> None:
        count = read_again(rows)
        text = ngettext("%d document is being read.", "%d documents are being read.", count) % count
        self.message_user(request, text, messages.SUCCESS)

    @admin.action(description=_("Embed anew by the present model"), permissions=["change"])
    def embed_anew(self, request: HttpRequest, rows: QuerySet[KnowledgeDocument]) -> None:
        count = embed_again(rows)
        text = ngettext("%d document is being indexed.", "%d documents are being indexed.", count) % count
        self.message_user(request, text, messages.SUCCESS)
