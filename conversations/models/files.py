"""Files that tools made. The bytes lie outside the web root under the row's id; names are only text."""

import uuid
from pathlib import Path
from typing import Self

from django.conf import settings
from django.db import models

from accounts.models import User
from conversations.models.record import Run


class ArtifactQuerySet(models.QuerySet["Artifact"]):
    def visible_to(self, user: User) -> Self:
        """Files of one's own runs."""
        return self.filter(run__user_id=user.pk) if user.is_active else self.none()


class Artifact(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="artifacts")
    key = models.CharField(max_length=200, help_text="The position of the call that made it.")
    filename = models.CharField(max_length=200)
    content_type = models.CharField(max_length=100, help_text="As the tool says; nothing relies on it.")
    size = models.PositiveIntegerField(help_text="Bytes.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ArtifactQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]

    def __str__(self) -> str:
        return self.filename

    @property
    def path(self) -> Path:
        return Path(settings.MEDIA_ROOT) / "artifacts" / self.id.hex[:2] / self.id.hex
