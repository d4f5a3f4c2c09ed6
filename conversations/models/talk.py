"""What people and agents say: conversations and their messages."""

import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import Q
from django.db.models.functions import Left

from accounts.models import User
from conversations.versions import etag_of

if TYPE_CHECKING:
    from conversations.models.files import Attachment


TITLE_CHARS = 80


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def visible_to(self, user: User) -> Self:
        """A conversation belongs to one person; nobody else finds it."""
        return self.filter(user_id=user.pk) if user.is_active else self.none()


class Conversation(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations")
    agent = models.ForeignKey("tools_admin.Agent", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    leaf = models.ForeignKey(
        "Message",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The end of the visible branch; what is said next follows it.",
    )
    title = models.CharField(max_length=200, blank=True)
    pinned = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        indexes = [
            # the list of a user's conversations, pinned ones first, then the newest
            models.Index(fields=["user", "archived", "-pinned", "-updated_at", "-id"], name="conversation_list"),
        ]

    def __str__(self) -> str:
        return self.title or "New conversation"

    @staticmethod
    def title_of(content: str) -> str:
        """Of one that begins with this message."""
        line = content.split("\n", 1)[0].strip()
        return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"

    @property
    def etag(self) -> str:
        """Of what two people can change at once; new messages do not count."""
        return etag_of(self.title, self.pinned, self.archived, self.agent_id)


class MessageQuerySet(models.QuerySet["Message"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(conversation__user_id=user.pk) if user.is_active else self.none()


class Message(models.Model):
    """Append-only. `parent` makes the tree in which edits and regenerations are siblings."""

    # What search looks at; the beginning only, because PostgreSQL's word lists hold a megabyte.
    WORDS = SearchVector(Left("content", 100_000), config="simple")

    class Role(models.TextChoices):
        USER = "user", "You"
        ASSISTANT = "assistant", "Assistant"

    class Feedback(models.TextChoices):
        GOOD = "good", "Good answer"
        BAD = "bad", "Bad answer"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="children")
    run = models.ForeignKey("Run", on_delete=models.SET_NULL, null=True, blank=True, related_name="messages")
    role = models.CharField(max_length=10, choices=Role)
    content = models.TextField()
    attachments = ArrayField(
        models.UUIDField(), default=list, blank=True, help_text="Files that came with it, in order."
    )
    partial = models.BooleanField(default=False, help_text="The answer was stopped or broke off.")
    injected = models.BooleanField(default=False, help_text="Sent while a run was going on.")
    recalled = models.BooleanField(default=False)
    pinned = models.BooleanField(default=False, help_text="Stays in the agent's context.")
    feedback = models.CharField(max_length=4, choices=Feedback, blank=True)
    client_id = models.CharField(max_length=64, blank=True, help_text="The sender's own id: one message per id.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [
            models.Index(fields=["conversation", "created_at"], name="message_branch"),
            # is this message on record already?
            models.Index(fields=["client_id"], condition=~Q(client_id=""), name="message_client_id"),
            # search in the list of conversations
            GinIndex(SearchVector(Left("content", 100_000), config="simple"), name="message_words"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "client_id"], condition=~Q(client_id=""), name="message_once_per_client_id"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_role_display()}: {self.content[:60]}"

    @property
    def etag(self) -> str:
        return etag_of(self.pinned, self.feedback)

    @cached_property
    def files(self) -> "list[Attachment]":
        """The rows of `attachments` that are still there. Of many messages `load_files` reads them at once."""
        from conversations.models.files import load_files

        load_files([self])
        found: list[Attachment] = self.__dict__.get("files", [])
        return found
