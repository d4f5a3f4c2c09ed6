"""Attached documents are read in a worker, in a confined process: ahead of time if all goes well, before a run is told
of them in any case."""

import logging
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar
from uuid import UUID

from django.conf import settings
from django.utils.translation import override

from conversations import live
from conversations.cleaning import clean
from conversations.models import Attachment
from conversations.patience import patiently
from tools_admin.documents.parsing import DocumentError, explain, parse

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

PROMPT_CHARS = 32_000  # of a document that stands in a prompt


class Unread(Exception):
    """Documents that a run is about to be told of, and that nobody has read yet."""

    def __init__(self, ids: Iterable[UUID]) -> None:
        super().__init__()
        self.ids = list(ids)


async def with_files_read(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`patiently`, and once more after reading what the work found unread."""
    while True:
        try:
            return await patiently(work, *args, **kwargs)
        except Unread as unread:
            await read_documents(unread.ids)


async def read_documents(ids: Iterable[UUID]) -> None:
    """Afterwards none of them is queued: each has its text, or the reason why it has none."""
    for row in await patiently(_queued, ids):
        await _read(row)


def _queued(ids: Iterable[UUID]) -> list[Attachment]:
    rows = Attachment.objects.filter(id__in=ids, status=Attachment.Status.QUEUED).defer("sections")
    return list(rows.select_related("user"))


async def _read(row: Attachment) -> None:
    try:
        parsed = await parse(row.path, row.filename, row.content_type)
    except DocumentError as error:
        row.status, row.problem = Attachment.Status.FAILED, error.code
    except OSError as error:
        log.warning("Attachment %s cannot be opened: %s", row.id, error)
        row.status, row.problem = Attachment.Status.FAILED, "broken"
    else:
        row.status = Attachment.Status.READY
        row.sections = clean([[section.text, str(section.place)] for section in parsed.sections])
        text = as_text(row.sections)
        row.chars, row.beginning = len(text), text[:PROMPT_CHARS]
    await patiently(_keep, row)


def as_text(sections: Iterable[list[str]]) -> str:
    """The whole text, each place named where it begins."""
    parts, before = [], ""
    for text, place in sections:
        parts.append(f"[{place}]\n{text}" if place and place != before else text)
        before = place
    return "\n\n".join(parts)


def _keep(row: Attachment) -> None:
    read = ["status", "problem", "sections", "chars", "beginning"]
    Attachment.objects.filter(id=row.id).update(**{name: getattr(row, name) for name in read})
    with override(row.user.language or settings.LANGUAGE_CODE):
        problem = explain(row.problem) if row.problem else ""
    data = {"id": str(row.id), "status": str(row.status), "problem": problem}
    live.tell_user(row.user_id, ("attachment", data))
