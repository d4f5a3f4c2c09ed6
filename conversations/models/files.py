"""Files: what people add to their messages, and what tools make. The bytes lie outside the web root under the row's id;
names are only text."""

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q
from django.db.models.signals import post_delete
from django.dispatch import receiver

from accounts.models import User
from conversations.models.record import Run
from conversations.models.talk import Conversation

# What a browser is shown as a picture. All bytes under these types have been drawn anew by us (`pictures.py`).
PICTURES = ("image/png", "image/jpeg")


class StoredFile(models.Model):
    """A row and its bytes; they go together."""

    folder: ClassVar[str]

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    filename = models.CharField(max_length=200)
    content_type = models.CharField(max_length=100, help_text="Of what is stored; of anything but pictures a hint.")
    size = models.PositiveIntegerField(help_text="Bytes.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.filename

    @property
    def path(self) -> Path:
        return Path(settings.MEDIA_ROOT) / self.folder / self.id.hex[:2] / self.id.hex

    @property
    def described(self) -> dict[str, Any]:
        """As pages and records name it."""
        named = {"id": str(self.id), "filename": self.filename}
        return {**named, "content_type": self.content_type, "size": self.size}

    @property
    def is_picture(self) -> bool:
        return self.content_type in PICTURES


class ArtifactQuerySet(models.QuerySet["Artifact"]):
    def visible_to(self, user: User) -> Self:
        """Files of one's own runs."""
        return self.filter(run__user_id=user.pk) if user.is_active else self.none()


class Artifact(StoredFile):
    """A file that a tool made."""

    folder = "artifacts"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="artifacts")
    key = models.CharField(max_length=200, help_text="The position of the call that made it.")

    objects = ArtifactQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]


class AttachmentQuerySet(models.QuerySet["Attachment"]):
    def visible_to(self, user: User) -> Self:
        """One's own, sent or not."""
        return self.filter(user_id=user.pk) if user.is_active else self.none()

    def unsent(self) -> Self:
        return self.filter(conversation=None)


class Attachment(StoredFile):
    """A file that a person adds to messages of one conversation. `Message.attachments` names the ids."""

    folder = "attachments"

    class Status(models.TextChoices):
        QUEUED = "queued", "Not read yet"
        READY = "ready", "Read"
        FAILED = "failed", "Cannot be read"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="attachments")
    conversation = models.ForeignKey(
        Conversation,
        on_delete=models.CASCADE,
        null=True,
        related_name="attachments",
        help_text="Where it was sent; until then nothing keeps it for long.",
    )
    status = models.CharField(max_length=6, choices=Status, default=Status.QUEUED)
    problem = models.CharField(max_length=20, blank=True, help_text="Why it cannot be read: a code of `documents`.")
    chars = models.PositiveIntegerField(default=0, help_text="Of its whole text.")
    beginning = models.TextField(blank=True, help_text="As much of its text as a prompt may hold, with places.")
    sections = models.JSONField(default=list, help_text="Its text: [[text, place], …]. Pictures have none.")

    objects = AttachmentQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        indexes = [
            # what has been left lying
            models.Index(fields=["created_at"], condition=Q(conversation=None), name="attachment_unsent"),
        ]


def load_files(messages: Iterable[Any]) -> None:
    """Gives messages, or rows with their columns, their `files`, without the texts: one query, and none where no
    message has any."""
    messages = list(messages)
    wanted = {number for message in messages for number in message.attachments}
    rows = Attachment.objects.defer("sections").in_bulk(wanted) if wanted else {}
    for message in messages:
        found = (rows.get(number) for number in message.attachments)
        message.files = [row for row in found if row and row.conversation_id == message.conversation_id]


@receiver(post_delete, sender=Artifact)
@receiver(post_delete, sender=Attachment)
def _remove(instance: StoredFile, **_: object) -> None:
    path = instance.path  # afterwards it has no id any more
    transaction.on_commit(lambda: path.unlink(missing_ok=True))
