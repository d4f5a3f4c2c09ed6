"""Collections and documents for tests."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import User
from tests.fake_model import FakeModel, vector_of
from tools_admin.documents.readers.markdown import sections
from tools_admin.knowledge.storing import add_document
from tools_admin.models import Connector, KnowledgeDocument, LanguageModel, Passage, Provider, Route, RouteEntry, Tool


def make_collection(name: str = "Rules", tool: str = "search_documents", **settings: Any) -> Connector:
    collection = Connector.objects.create(kind="knowledge", name=name, settings={"language": "english", **settings})
    schema = {"type": "object", "required": ["question"], "properties": {"question": {"type": "string"}}}
    Tool.objects.create(
        connector=collection,
        key="search_documents",
        name=tool,
        description="Search.",
        effect_class="read",
        parameters=schema,
    )
    return collection


def add(collection: Connector, text: str | bytes, name: str = "rules.md", owner: User | None = None, **more: Any):
    content = text.encode() if isinstance(text, str) else text
    return add_document(collection, SimpleUploadedFile(name, content), owner, **more)


def embedding_route(model: FakeModel, **fields: Any) -> LanguageModel:
    provider = Provider.objects.create(name="Vectors", base_url=model.url)
    row = LanguageModel.objects.create(provider=provider, name="vectors", kind="embedding", **fields)
    route, _ = Route.objects.get_or_create(name="embedding")
    RouteEntry.objects.create(route=route, model=row)
    return row


def stored(
    collection: Connector,
    text: str,
    owner: User | None = None,
    groups: Iterable[Group] = (),
    model: LanguageModel | None = None,
) -> KnowledgeDocument:
    """Ready, without a worker and without a file."""
    document = KnowledgeDocument.objects.create(collection=collection, owner=owner, name="rules.md", status="ready")
    document.groups.set(groups)
    for number, (part, place) in enumerate(sections(text)):
        vector = vector_of(part) if model else None
        language = collection.settings["language"]
        values = {"text": part, "language": language, "embedding": vector, "embedded_by": model, **place}
        Passage.objects.create(document=document, number=number, **values)
    return document
