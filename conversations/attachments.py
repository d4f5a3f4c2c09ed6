"""Files that people add to their messages: taken in, given to a message, and thrown away when nobody sent them."""

import threading
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from accounts.models import User
from agentapp.celery import hint
from agentapp.confined import Refused
from agentapp.file_names import plain_name
from conversations.attachment_errors import (
    AttachmentElsewhere,
    AttachmentSent,
    BadPicture,
    EmptyFile,
    FileTooLarge,
    NoSpaceLeft,
    TooManyAttachments,
    UnsupportedFile,
)
from conversations.errors import NotFound
from conversations.files import save_file
from conversations.models import Attachment, Conversation
from conversations.pictures import looks_like_picture, redrawn
from tools_admin.documents.kinds import kind_of

MOST_IN_MESSAGE = 20
UNSENT_DAYS = 7  # a draft waits in its browser
SWEPT_AT_ONCE = 100
# Of a web process: each picture may take a gigabyte while it is drawn, so others wait.
_drawing = threading.BoundedSemaphore(2)


def add_attachment(user: User, filename: str, content: bytes, *, any_kind: bool = False) -> Attachment:
    """Takes a file in; a picture is drawn anew, any other is read by a worker. With `any_kind` what cannot be read is
    kept as well, to be downloaded.

    Raises EmptyFile, FileTooLarge, UnsupportedFile, BadPicture, NoSpaceLeft.
    """
    if not content:
        raise EmptyFile
    if len(content) > settings.MAX_ATTACHMENT_BYTES:
        raise FileTooLarge(len(content), settings.MAX_ATTACHMENT_BYTES)
    row = Attachment(user=user, filename=plain_name(filename) or "file", content_type="")
    if looks_like_picture(content):
        try:
            with _drawing:
                content, row.content_type = async_to_sync(redrawn)(content)
        except Refused as refused:
            raise BadPicture(refused.code) from None
        row.status = Attachment.Status.READY
    elif kind := kind_of(content, filename):
        row.content_type = kind
    else:
        if not any_kind:
            raise UnsupportedFile
        row.content_type, row.status, row.problem = "application/octet-stream", Attachment.Status.FAILED, "unknown"
    with transaction.atomic(durable=True):
        User.objects.select_for_update().get(pk=user.pk)  # two at once count each other
        used = Attachment.objects.filter(user=user).aggregate(sum=Sum("size"))["sum"] or 0
        if used + len(content) > settings.ATTACHMENT_QUOTA_BYTES:
            raise NoSpaceLeft(used, settings.ATTACHMENT_QUOTA_BYTES)
        save_file(row, content)
        if row.status == Attachment.Status.QUEUED:
            transaction.on_commit(lambda: _have_read(row.id))
    return row


def _have_read(attachment_id: UUID) -> None:
    """A hint: if it is lost, the run that the file is for has it read."""
    hint("conversations.tasks.read_attachment", str(attachment_id))


def attachment_of(user: User, attachment_id: UUID) -> Attachment | None:
    """Without its text."""
    return Attachment.objects.visible_to(user).defer("sections").filter(id=attachment_id).first()


def delete_attachment(user: User, attachment_id: UUID) -> None:
    """Of one that no message holds. Raises NotFound, AttachmentSent."""
    with transaction.atomic(durable=True):
        row = Attachment.objects.visible_to(user).select_for_update().filter(id=attachment_id).first()
        if row is None:
            raise NotFound("attachment")
        if row.conversation_id:
            raise AttachmentSent
        row.delete()


def attach(user: User, conversation: Conversation, ids: Sequence[UUID]) -> list[Attachment]:
    """Gives files to a conversation, for a message of it, in the caller's transaction. From then on they are its own.

    Raises NotFound, AttachmentElsewhere, TooManyAttachments.
    """
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return []
    if len(wanted) > MOST_IN_MESSAGE:
        raise TooManyAttachments(len(wanted), MOST_IN_MESSAGE)
    mine = Attachment.objects.visible_to(user).defer("sections").select_for_update()
    rows = {row.id: row for row in mine.filter(id__in=wanted).order_by("id")}
    for number in wanted:
        row = rows.get(number)
        if row is None:
            raise NotFound("attachment")
        if row.conversation_id not in (None, conversation.id):
            raise AttachmentElsewhere(row.filename)
    Attachment.objects.filter(id__in=wanted, conversation=None).update(conversation=conversation)
    for row in rows.values():
        row.conversation = conversation
    return [rows[number] for number in wanted]


@transaction.atomic
def sweep_attachments() -> None:
    """Files that nobody sent are gone after a while."""
    old = Attachment.objects.unsent().filter(created_at__lt=timezone.now() - timedelta(days=UNSENT_DAYS))
    for row in old.defer("sections").select_for_update(skip_locked=True)[:SWEPT_AT_ONCE]:
        row.delete()
