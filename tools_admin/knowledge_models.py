"""Documents of collections (connectors of the kind knowledge), and the passages that agents find in them."""

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models, transaction
from django.db.models import Case, F, Q, TextChoices, When
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField

from accounts.models import User
from tools_admin.connector_models import Connector, Tool
from tools_admin.documents.parsing import Place, explain
from tools_admin.language_models import LanguageModel

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager

# PostgreSQL's configurations for stems and stop words; `simple` takes words as they are.
LANGUAGES = [
    ("simple", _("several, or another")),
    ("english", _("English")),
    ("german", _("German")),
    ("french", _("French")),
    ("spanish", _("Spanish")),
    ("italian", _("Italian")),
    ("portuguese", _("Portuguese")),
    ("dutch", _("Dutch")),
]


def collections_of(user: User) -> models.QuerySet[Connector]:
    """Those that this person's agents may search."""
    tools = Tool.objects.visible_to(user).filter(connector__kind="knowledge")
    return Connector.objects.filter(pk__in=tools.values("connector"))


class KnowledgeDocumentQuerySet(models.QuerySet["KnowledgeDocument"]):
    def visible_to(self, user: User) -> Self:
        """One's own, and shared ones for all or for one's groups, of collections that one may search."""
        if not user.is_active:
            return self.none()
        groups = Group.objects.filter(user=user)
        shared = Q(owner=None) & (~Q(pk__in=_restricted()) | Q(pk__in=_restricted().filter(group__in=groups)))
        return self.filter(Q(owner=user) | shared, collection__in=collections_of(user))

    def owned_by(self, user: User) -> Self:
        """Those that this person may delete, also where the collection has been closed to them."""
        return self.filter(owner=user) if user.is_active else self.none()

    def unfinished(self) -> Self:
        return self.filter(status__in=KnowledgeDocument.UNFINISHED)


def _restricted() -> Any:
    """Document ids of the grants to groups."""
    return KnowledgeDocument.groups.through.objects.values("knowledgedocument")


class KnowledgeDocument(models.Model):
    """A file and what became of it. With an owner it is that person's alone."""

    class Status(TextChoices):
        QUEUED = "queued", _("waiting")
        READING = "reading", _("being read")
        EMBEDDING = "embedding", _("being indexed")
        READY = "ready", _("ready")
        FAILED = "failed", _("failed")

    UNFINISHED = (Status.QUEUED, Status.READING, Status.EMBEDDING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(
        Connector,
        on_delete=models.CASCADE,
        related_name="documents",
        limit_choices_to={"kind": "knowledge"},
        verbose_name=_("collection"),
        help_text=_("Whoever may use its search tool finds its shared documents."),
    )
    owner = models.ForeignKey(
        User,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="documents",
        verbose_name=_("owner"),
        help_text=_("Only this person finds it; empty means that it is shared."),
    )
    groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="+",
        verbose_name=_("groups"),
        help_text=_("Of a shared document: only these people find it; none means everybody of the collection."),
    )
    name = models.CharField(_("name"), max_length=200, help_text=_("As it is cited."))
    media_type = models.CharField(_("kind of file"), max_length=100, blank=True, editable=False)
    size = models.PositiveBigIntegerField(_("size"), editable=False, default=0, help_text="Bytes.")
    status = models.CharField(_("state"), max_length=10, choices=Status, default=Status.QUEUED, editable=False)
    problem = models.CharField(max_length=30, blank=True, editable=False, help_text="A code of `documents.parsing`.")
    created_at = models.DateTimeField(_("uploaded"), auto_now_add=True)
    # The worker that has it, until when, and how often one has taken it without coming to an end.
    claim = models.UUIDField(null=True, editable=False)
    claimed_until = models.DateTimeField(null=True, editable=False)
    attempts = models.PositiveSmallIntegerField(default=0, editable=False)

    passages: "RelatedManager[Passage]"
    uses: "RelatedManager[EmbeddingUse]"

    objects: ClassVar[KnowledgeDocumentQuerySet] = KnowledgeDocumentQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name = _("document")
        verbose_name_plural = _("documents")
        ordering = ["name", "id"]
        indexes = [
            # the next one to work on
            models.Index(
                fields=["created_at"],
                condition=Q(status__in=["queued", "reading", "embedding"]),
                name="unfinished_documents",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        return Path(settings.MEDIA_ROOT) / "documents" / self.id.hex[:2] / self.id.hex

    @property
    def explanation(self) -> str:
        """Why it failed or is not all that it could be, in words for people."""
        if self.problem == "crashed":
            return str(_("Reading it ended the worker three times. Save it anew, or as plain text."))
        if self.problem == "not_embedded":
            return str(_("Found by its words only: the embedding model did not answer."))
        return explain(self.problem) if self.problem else ""


@receiver(post_delete, sender=KnowledgeDocument)
def _remove(instance: KnowledgeDocument, **_: object) -> None:
    path = instance.path  # afterwards it has no id any more
    transaction.on_commit(lambda: path.unlink(missing_ok=True))


class PassageQuerySet(models.QuerySet["Passage"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(document__in=KnowledgeDocument.objects.visible_to(user))


def _words() -> Any:
    cases = [When(language=name, then=SearchVector("heading", "text", config=name)) for name, _ in LANGUAGES[1:]]
    return Case(*cases, default=SearchVector("heading", "text", config="simple"))


class Passage(models.Model):
    """Some paragraphs of a document, as long as one thought takes. Without a vector it is found by its words."""

    document = models.ForeignKey(KnowledgeDocument, on_delete=models.CASCADE, related_name="passages")
    number = models.PositiveIntegerField()
    language = models.CharField(max_length=12, choices=LANGUAGES)
    text = models.TextField()
    heading = models.CharField(max_length=300, blank=True)
    page = models.PositiveIntegerField(default=0)
    row = models.PositiveIntegerField(default=0)
    search = models.GeneratedField(expression=_words(), output_field=SearchVectorField(), db_persist=True)
    # Of any length: each model has its own, and an index of its own (`knowledge/vectors.py`).
    embedding = VectorField(null=True)
    embedded_by = models.ForeignKey(LanguageModel, on_delete=models.SET_NULL, null=True, related_name="+")

    objects: ClassVar[PassageQuerySet] = PassageQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        ordering = ["document", "number"]
        constraints = [models.UniqueConstraint(fields=["document", "number"], name="passage_once_per_document")]
        indexes = [GinIndex(F("search"), name="passage_words")]

    def __str__(self) -> str:
        return f"{self.document_id}#{self.number}"

    @property
    def place(self) -> Place:
        return Place(self.page, self.row, self.heading)


class EmbeddingUse(models.Model):
    """What a call of an embedding model took: for a document, or for a person's question."""

    document = models.ForeignKey(KnowledgeDocument, on_delete=models.SET_NULL, null=True, related_name="uses")
    user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    model = models.ForeignKey(LanguageModel, on_delete=models.SET_NULL, null=True, related_name="+")
    tokens = models.PositiveIntegerField()
    cost = models.PositiveBigIntegerField(help_text="Micro-units of the currency.")
    created_at = models.DateTimeField(auto_now_add=True)
    payers = models.ManyToManyField("accounts.Budget", related_name="+", blank=True)

    def __str__(self) -> str:
        return f"{self.tokens} tokens"
