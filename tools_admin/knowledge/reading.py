"""In a worker: documents are read, cut into passages and embedded. Each step may be done again by another worker.

A document belongs to the worker whose claim it carries; a worker that was given up for lost writes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import uuid
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from agentapp.database import in_thread
from tools_admin.clients import ModelClients
from tools_admin.documents.chunking import passages
from tools_admin.documents.parsing import DocumentError, Parsed, parse
from tools_admin.knowledge.embedding import Embedded, NoVectors, can_pay, embed, embedding_model, record_use
from tools_admin.knowledge.vectors import ensure_index
from tools_admin.knowledge_models import KnowledgeDocument, Passage
from tools_admin.models import LanguageModel

log = logging.getLogger(__name__)

AT_ONCE = 2  # in a process: its other threads are for runs
BATCH = 32  # passages a request
MOST_ATTEMPTS = 3
PAUSE_SECONDS = 30  # before the endpoint is asked again, the second time twice as long

Status = KnowledgeDocument.Status
_slots = threading.BoundedSemaphore(AT_ONCE)


class Lost(Exception):
    """The document is deleted, or another worker has it."""


def due() -> QuerySet[KnowledgeDocument]:
    """Documents that nobody is working on, the longest waiting first."""
    free = Q(claimed_until=None) | Q(claimed_until__lt=timezone.now())
    return KnowledgeDocument.objects.unfinished().filter(free).order_by("created_at")


def read_documents() -> None:
    """Works until nothing is left. Hints that find the process busy are dropped: who is at work goes on to the next."""
    if not _slots.acquire(blocking=False):
        return
    try:
        while (document := claim_next()) is not None:
            with contextlib.suppress(Lost):
                asyncio.run(_work(document))
    finally:
        _slots.release()


def claim_next() -> KnowledgeDocument | None:
    with transaction.atomic():
        row = due().select_for_update(skip_locked=True, of=("self",)).select_related("collection").first()
        if row is None:
            return None
        row.claim, row.attempts = uuid.uuid4(), row.attempts + 1
        row.claimed_until = _soon()
        if row.status == Status.QUEUED:
            row.status = Status.READING
        if row.attempts > MOST_ATTEMPTS:
            read = row.status == Status.EMBEDDING
            row.status, row.problem = (Status.READY, "not_embedded") if read else (Status.FAILED, "crashed")
            row.claim = row.claimed_until = None
        row.save(update_fields=["claim", "attempts", "claimed_until", "status", "problem"])
    return row if row.claim else claim_next()


async def _work(document: KnowledgeDocument) -> None:
    async with _held(document):
        try:
            if document.status == Status.READING:
                await _read(document)
            await _embed(document)
        except DocumentError as error:
            await in_thread(_set, document, status=Status.FAILED, problem=error.code, claim=None, claimed_until=None)


@contextlib.asynccontextmanager
async def _held(document: KnowledgeDocument) -> AsyncIterator[None]:
    """Gives signs of life; ends the work when the document is somebody else's or gone."""
    work = asyncio.current_task()

    async def beat() -> None:
        while True:
            await asyncio.sleep(settings.RUN_HEARTBEAT_SECONDS)
            try:
                await in_thread(_set, document, claimed_until=_soon())
            except Lost:
                if work is not None:
                    work.cancel()
                return

    beating = asyncio.create_task(beat())
    try:
        yield
    except asyncio.CancelledError:
        if beating.done():
            raise Lost from None
        raise
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def _read(document: KnowledgeDocument) -> None:
    try:
        parsed = await parse(document.path, document.name)
    except FileNotFoundError:
        raise DocumentError("broken") from None
    await in_thread(_store, document, parsed)


def _store(document: KnowledgeDocument, parsed: Parsed) -> None:
    """All passages and the next step, or nothing."""
    language = document.collection.settings.get("language", "simple")
    rows = [
        Passage(
            document=document,
            number=number,
            language=language,
            text=found.text,
            heading=found.place.heading,
            page=found.place.page,
            row=found.place.row,
        )
        for number, found in enumerate(passages(parsed.sections))
    ]
    with transaction.atomic():
        _set(document, status=Status.EMBEDDING, media_type=parsed.media_type, attempts=1)
        document.passages.all().delete()
        Passage.objects.bulk_create(rows, batch_size=500)


async def _embed(document: KnowledgeDocument) -> None:
    """Batch by batch, so that a worker that takes over goes on where this one was."""
    model = await in_thread(embedding_model, None)
    clients = ModelClients()
    try:
        while model is not None and (batch := await in_thread(_without_vector, document, model)):
            if not await in_thread(can_pay, document.owner_id):
                raise NoVectors("The owner's budget is used up.")
            texts = [_for_embedding(document, passage) for passage in batch]
            embedded = await embed(model, texts, clients)
            await in_thread(ensure_index, len(embedded.vectors[0]))
            await in_thread(_store_vectors, document, model, batch, embedded)
    except NoVectors as problem:
        log.warning("No vectors for document %s: %s", document.pk, problem)
        await in_thread(_postpone, document)
        return
    finally:
        await clients.aclose()
    await in_thread(_set, document, status=Status.READY, claim=None, claimed_until=None)


def _without_vector(document: KnowledgeDocument, model: LanguageModel) -> list[Passage]:
    missing = document.passages.exclude(embedded_by=model).order_by("number")
    return list(missing.defer("search", "embedding")[:BATCH])


def _for_embedding(document: KnowledgeDocument, passage: Passage) -> str:
    return f"{document.name}\n{passage.heading}\n\n{passage.text}"


def _store_vectors(document: KnowledgeDocument, model: LanguageModel, batch: list[Passage], embedded: Embedded) -> None:
    for passage, vector in zip(batch, embedded.vectors, strict=True):
        passage.embedding, passage.embedded_by = vector, model
    with transaction.atomic():
        _set(document, attempts=1)
        Passage.objects.bulk_update(batch, ["embedding", "embedded_by"])
        record_use(document.owner_id, model, embedded, document.pk)


def _postpone(document: KnowledgeDocument) -> None:
    """It is found by its words meanwhile. After some attempts that is how it stays, until an admin has it done anew."""
    if document.attempts >= MOST_ATTEMPTS:
        _set(document, status=Status.READY, problem="not_embedded", claim=None, claimed_until=None)
    else:
        pause = timedelta(seconds=PAUSE_SECONDS * 2**document.attempts)
        _set(document, claim=None, claimed_until=timezone.now() + pause)


def _set(document: KnowledgeDocument, **values: object) -> None:
    """Only while it is this worker's; raises `Lost`."""
    if not KnowledgeDocument.objects.filter(pk=document.pk, claim=document.claim).update(**values):
        raise Lost


def _soon() -> datetime:
    return timezone.now() + timedelta(seconds=settings.RUN_LEASE_SECONDS)
