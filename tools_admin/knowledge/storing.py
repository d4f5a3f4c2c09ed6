"""Documents come and go: what is taken, where the file lies, who is told to read it."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import Sum
from django.utils.translation import gettext as _

from accounts.models import User
from agentapp.celery import hint
from agentapp.file_names import plain_name
from tools_admin.connector_models import Connector
from tools_admin.documents.parsing import MAX_BYTES, explain
from tools_admin.knowledge_models import KnowledgeDocument, Passage

MOST_OWN = 200
MOST_OWN_BYTES = 500_000_000


class NotTaken(Exception):
    """A file is not taken; the text is for whoever sent it."""


def add_document(
    collection: Connector, file: "UploadedFile[Any]", owner: User | None, groups: Iterable[Group] = ()
) -> KnowledgeDocument:
    """Keeps the file and has it read. Raises `NotTaken`."""
    size = file.size or 0
    if not size or size > MAX_BYTES:
        raise NotTaken(explain("too_large" if size else "empty"))
    row = KnowledgeDocument(
        collection=collection, owner=owner, name=plain_name(file.name or "") or _("document"), size=size
    )
    row.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with row.path.open("xb") as kept:
            for part in file.chunks():
                kept.write(part)
        with transaction.atomic():
            if owner is not None:
                _check_room(owner, size)
            row.save()
            row.groups.set(groups)
            transaction.on_commit(wake_readers)
    except BaseException:
        row.path.unlink(missing_ok=True)
        raise
    return row


def _check_room(owner: User, size: int) -> None:
    User.objects.select_for_update(no_key=True).get(
        pk=owner.pk
    )  # of two uploads at once the second one counts the first
    own = KnowledgeDocument.objects.filter(owner=owner)
    if own.count() >= MOST_OWN:
        raise NotTaken(_("You have %(count)d documents, which is the most. Delete some first.") % {"count": MOST_OWN})
    if (own.aggregate(sum=Sum("size"))["sum"] or 0) + size > MOST_OWN_BYTES:
        raise NotTaken(_("Your documents would have more than 500 MB. Delete some first."))


def read_again(documents: Iterable[KnowledgeDocument]) -> int:
    """From the file, as if it were new."""
    ids = [document.pk for document in documents]
    with transaction.atomic():
        count = KnowledgeDocument.objects.filter(pk__in=ids).update(
            status=KnowledgeDocument.Status.QUEUED, problem="", attempts=0, claim=None, claimed_until=None
        )
        transaction.on_commit(wake_readers)
    return count


def embed_again(documents: Iterable[KnowledgeDocument]) -> int:
    """By the model of the route as it is now. What is not read to its end stays as it is."""
    ids = [document.pk for document in documents]
    with transaction.atomic():
        Passage.objects.filter(document__in=ids).update(embedded_by=None, embedding=None)
        count = KnowledgeDocument.objects.filter(pk__in=ids, status=KnowledgeDocument.Status.READY).update(
            status=KnowledgeDocument.Status.EMBEDDING, problem="", attempts=0, claim=None, claimed_until=None
        )
        transaction.on_commit(wake_readers)
    return count


def wake_readers() -> None:
    """A hint; without it the sweeper finds the document."""
    hint("tools_admin.tasks.read_documents")
