"""What a person reaches by its address: collections, documents, passages. All else is 404."""

from uuid import UUID

from django.db.models import Q
from django.http import Http404

from accounts.models import User
from tools_admin.connector_models import Connector
from tools_admin.knowledge_models import KnowledgeDocument, Passage, collections_of

NEIGHBOURS = 2  # passages before and after one that was cited


def collection_of(user: User, collection_id: int) -> Connector:
    if (found := collections_of(user).filter(pk=collection_id).first()) is None:
        raise Http404
    return found


def document_of(user: User, document_id: UUID) -> KnowledgeDocument:
    if (found := KnowledgeDocument.objects.visible_to(user).filter(pk=document_id).first()) is None:
        raise Http404
    return found


def own_document_of(user: User, document_id: UUID) -> KnowledgeDocument:
    if (found := KnowledgeDocument.objects.owned_by(user).filter(pk=document_id).first()) is None:
        raise Http404
    return found


def passage_of(user: User, passage_id: int) -> tuple[Passage, list[Passage]]:
    """It and its neighbours, in their order, itself among them."""
    seen = Passage.objects.visible_to(user).defer("search", "embedding")
    found = seen.filter(pk=passage_id).select_related("document").first()
    if found is None:
        raise Http404
    near = Q(number__gte=found.number - NEIGHBOURS, number__lte=found.number + NEIGHBOURS)
    return found, list(seen.filter(near, document=found.document_id).order_by("number"))


def takes_documents(collection: Connector) -> bool:
    """Whether people may add their own."""
    return bool(collection.settings.get("uploads"))
