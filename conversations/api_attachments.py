"""REST: files that people add to messages."""

from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import File, Query, Router, Schema, Status
from ninja.files import UploadedFile
from pydantic import Field

from accounts.auth import caller
from accounts.idempotency import idempotent
from accounts.paging import MOST, Limit, Page, TimeCursor, page_by_time
from accounts.schemas import PageOut
from conversations import attachments
from conversations.attachment_errors import FileTooLarge
from conversations.files import AS_FILE, serve
from conversations.models import Attachment
from conversations.schemas import AttachmentOut

router = Router(tags=["Files"])


class Wanted(Schema):
    ids: list[UUID] = Field([], max_length=MOST, description="Only these, as far as they are there.")


@router.post("/attachments", response={201: AttachmentOut}, summary="Upload a file for a message")
@idempotent
def add_attachment(request: HttpRequest, file: File[UploadedFile]) -> Status[Attachment]:
    """Multipart, one file a request, in the part `file`. Send its id with a message within a week."""
    if (file.size or 0) > settings.MAX_ATTACHMENT_BYTES:  # it is on disk, and need not come into memory
        raise FileTooLarge(file.size or 0, settings.MAX_ATTACHMENT_BYTES)
    return Status(201, attachments.add_attachment(caller(request), file.name or "", file.read()))


@router.get("/attachments", response=PageOut[AttachmentOut], summary="Your files")
def list_attachments(
    request: HttpRequest, wanted: Query[Wanted], cursor: TimeCursor = None, limit: Limit = 50
) -> Page[Attachment]:
    """The newest first."""
    rows = Attachment.objects.visible_to(caller(request)).defer("sections", "beginning")
    return page_by_time(rows.filter(id__in=wanted.ids) if wanted.ids else rows, cursor, limit, newest_first=True)


@router.get("/attachments/{uuid:attachment_id}", summary="A file of a message", openapi_extra=AS_FILE)
def get_attachment(request: HttpRequest, attachment_id: UUID) -> HttpResponseBase:
    """Pictures as what they are, all else as bytes."""
    return serve(attachments.attachment_of(caller(request), attachment_id))


@router.delete("/attachments/{uuid:attachment_id}", response={204: None}, summary="Delete a file that was not sent")
def delete_attachment(request: HttpRequest, attachment_id: UUID) -> Status[None]:
    """409 `attachment_sent` for one that a message has: it goes with its conversation."""
    attachments.delete_attachment(caller(request), attachment_id)
    return Status(204, None)
