"""REST: collections of documents and one's own documents in them."""

from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from ninja import File, Router, Schema, Status
from ninja.errors import HttpError
from ninja.files import UploadedFile
from pydantic import Field

from accounts.auth import caller
from accounts.examples import ASKED_AT, COLLECTION, DOCUMENT, PASSAGE, example
from accounts.idempotency import idempotent
from accounts.paging import IdCursor, Limit, Page, TimeCursor, page_by_id, page_by_time
from accounts.schemas import PageOut
from tools_admin.connector_models import Connector
from tools_admin.knowledge import reach
from tools_admin.knowledge.storing import NotTaken, add_document
from tools_admin.knowledge_models import KnowledgeDocument, Passage, collections_of

router = Router(tags=["Documents"])


class CollectionOut(Schema):
    model_config = example(id=COLLECTION, name="Rules of the house", about="Travel, holidays, expenses.", uploads=True)

    id: int = Field(description="Names the collection in all other calls.")
    name: str = Field(description="As people read it.")
    about: str = Field(description="What is in it; perhaps empty.")
    uploads: bool = Field(description="Whether you may add documents of your own, which only you find.")

    @staticmethod
    def resolve_about(row: Connector) -> str:
        return str(row.settings.get("about", ""))

    @staticmethod
    def resolve_uploads(row: Connector) -> bool:
        return reach.takes_documents(row)


class DocumentOut(Schema):
    model_config = example(
        id=DOCUMENT,
        collection=COLLECTION,
        name="travel.md",
        media_type="text/markdown",
        size=4_096,
        status="ready",
        problem="",
        mine=True,
        created_at=ASKED_AT,
    )

    id: UUID = Field(description="Names the document in all other calls.")
    collection: int = Field(alias="collection_id", description="Where it is found.")
    name: str = Field(description="As it is cited.")
    media_type: str = Field(description="By its content; empty until it is read.")
    size: int = Field(description="Bytes.")
    status: str = Field(description="queued, reading, embedding (found by its words already), ready or failed.")
    problem: str = Field(alias="explanation", description="Why it failed, in words.")
    mine: bool = Field(description="Your own, which only you find; else it is shared.")
    created_at: datetime = Field(description="When it was uploaded.")

    @staticmethod
    def resolve_mine(row: KnowledgeDocument) -> bool:
        return row.owner_id is not None  # others' own ones are never given out


class PassageOut(Schema):
    model_config = example(id=PASSAGE, document=DOCUMENT, text="Hotels cost at most 120 a night.", place="Hotels")

    id: int = Field(description="As in the address that an answer cites.")
    document: UUID = Field(alias="document_id", description="Where it stands.")
    text: str = Field(description="The passage itself.")
    place: str = Field(description="Where in the document: page, row or heading; perhaps empty.")

    @staticmethod
    def resolve_place(row: Passage) -> str:
        return str(row.place)


@router.get("/collections", response=PageOut[CollectionOut], summary="Collections of documents that you may search")
def list_collections(request: HttpRequest, cursor: IdCursor = None, limit: Limit = 200) -> Page[Connector]:
    """Those that an agent of yours searches."""
    return page_by_id(collections_of(caller(request)), cursor, limit)


@router.get("/collections/{int:collection_id}/documents", response=PageOut[DocumentOut], summary="Its documents")
def list_documents(
    request: HttpRequest, collection_id: int, cursor: TimeCursor = None, limit: Limit = 100
) -> Page[KnowledgeDocument]:
    """Yours and the shared ones, the oldest first."""
    user = caller(request)
    collection = reach.collection_of(user, collection_id)
    return page_by_time(KnowledgeDocument.objects.visible_to(user).filter(collection=collection), cursor, limit)


@router.post(
    "/collections/{int:collection_id}/documents", response={201: DocumentOut}, summary="Add a document of your own"
)
@idempotent
def add(request: HttpRequest, collection_id: int, file: File[UploadedFile]) -> Status[KnowledgeDocument]:
    """Multipart, one file a request, in the part `file`. A worker reads it; `status` says how far it is."""
    user = caller(request)
    collection = reach.collection_of(user, collection_id)
    if not reach.takes_documents(collection):
        raise HttpError(403, "Only administrators add documents to this collection.")
    try:
        return Status(201, add_document(collection, file, user))
    except NotTaken as error:
        raise HttpError(400, str(error)) from None


@router.get("/documents/{uuid:document_id}", response=DocumentOut, summary="What became of a document")
def get_document(request: HttpRequest, document_id: UUID) -> KnowledgeDocument:
    """Its text is found by agents, and by `/passages` where they cite it."""
    return reach.document_of(caller(request), document_id)


@router.delete("/documents/{uuid:document_id}", response={204: None}, summary="Delete a document of your own")
def delete_document(request: HttpRequest, document_id: UUID) -> Status[None]:
    """Shared ones are the administrators'."""
    reach.own_document_of(caller(request), document_id).delete()
    return Status(204, None)


@router.get("/passages/{int:passage_id}", response=PageOut[PassageOut], summary="A cited passage and its neighbours")
def get_passage(request: HttpRequest, passage_id: int) -> Page[Passage]:
    """In the order of the document, all on one page."""
    return Page(reach.passage_of(caller(request), passage_id)[1], None)
