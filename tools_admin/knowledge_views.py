"""“My documents”, and a cited passage in its document."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.models import User
from tools_admin.documents.parsing import SUFFIXES
from tools_admin.knowledge import reach
from tools_admin.knowledge.storing import NotTaken, add_document
from tools_admin.knowledge_models import KnowledgeDocument, collections_of

MOST_LISTED = 500


def _me(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - `login_required` has seen to it
    return request.user


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def documents(request: HttpRequest) -> HttpResponse:
    """Three queries, however long the lists are. Posting is for browsers without scripts; others send file by file."""
    user = _me(request)
    collections = list(collections_of(user).order_by("name"))
    open_ = [collection for collection in collections if reach.takes_documents(collection)]
    if request.method == "POST":
        return _add(request, user)
    rows = KnowledgeDocument.objects.select_related("collection").order_by("-created_at")
    context = {
        "collections": collections,
        "open": open_,
        "own": rows.owned_by(user),
        "shared": rows.visible_to(user).filter(owner=None)[:MOST_LISTED],
        "accept": ",".join(SUFFIXES),
    }
    return render(request, "tools_admin/documents.html", context)


def _add(request: HttpRequest, user: User) -> HttpResponse:
    number = request.POST.get("collection", "")
    collection = reach.collection_of(user, int(number) if number.isdecimal() and len(number) < 15 else 0)
    files, taken = request.FILES.getlist("file"), 0
    if not reach.takes_documents(collection):
        messages.error(request, _("Only administrators add documents to this collection."))
        return redirect("documents")
    for file in files:
        try:
            add_document(collection, file, user)
            taken += 1
        except NotTaken as error:
            messages.error(request, f"{file.name}: {error}")
    if taken:
        text = ngettext("%d document is being read.", "%d documents are being read.", taken) % taken
        messages.success(request, text)
    elif not files:
        messages.error(request, _("Choose a file first."))
    return redirect("documents")


@login_required
@require_POST
def delete(request: HttpRequest, document_id: UUID) -> HttpResponse:
    document = reach.own_document_of(_me(request), document_id)
    document.delete()
    messages.success(request, _("%s is deleted.") % document.name)
    return redirect("documents")


@login_required
@never_cache
@require_GET
def passage(request: HttpRequest, passage_id: int) -> HttpResponse:
    found, near = reach.passage_of(_me(request), passage_id)
    return render(request, "tools_admin/passage.html", {"passage": found, "near": near, "document": found.document})
