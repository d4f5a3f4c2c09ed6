"""A document's bytes → its text in sections, or a reason for people why there is none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agentapp.confined import Limits, Refused, confined
from tools_admin.documents.kinds import DOCX, NAMED, PDF, kind_of

MAX_BYTES = 50_000_000
MAX_PAGES = 2_000
MAX_CHARS = 5_000_000
LIMITS = Limits(memory=1_000_000_000, cpu=120, seconds=240.0, output=40_000_000)

# What is offered for choosing in forms; the content decides.
SUFFIXES = (".pdf", ".docx", ".html", ".htm", ".md", ".markdown", ".txt", ".csv", ".tsv")

_READERS = {
    PDF: "pdf",
    DOCX: "docx",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "text/plain": "plain",
}

_WORDS: dict[str, Any] = {
    "empty": _("The file is empty."),
    "too_large": _("The file is larger than 50 MB. Split it, or upload the parts that matter."),
    "unknown": _("This is none of the kinds that can be read: PDF, Word (.docx), HTML, Markdown, text, CSV."),
    "encrypted": _("The PDF is protected by a password. Save it without one and upload it again."),
    "too_many_pages": _("The PDF has more than 2,000 pages. Split it, or upload the parts that matter."),
    "no_text": _("There is no text in it. If it was scanned, run text recognition (OCR) over it first."),
    "too_long": _("It has more than 5 million characters of text. Split it, or upload the parts that matter."),
    "memory": _("It takes more memory to read than a document may. Save it anew, or as plain text."),
    "time": _("It takes too long to read. Split it, or save it anew."),
    "output": _("It has more than 5 million characters of text. Split it, or upload the parts that matter."),
    "broken": _("The file is damaged, or not what its name says. Open it, save it anew and upload it again."),
}


class DocumentError(Exception):
    """There is no text; `str()` is for people, in their language, `code` is stable."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        return explain(self.code)


def explain(code: str) -> str:
    """The words for a `DocumentError.code`."""
    return str(_WORDS.get(code, _WORDS["broken"]))


@dataclass(frozen=True, slots=True)
class Place:
    """Where in its document a text begins: a page (from 1), a row (from 1, the header not counted), or headings."""

    page: int = 0
    row: int = 0
    heading: str = ""

    def __str__(self) -> str:
        """For models and logs."""
        return f"page {self.page}" if self.page else f"row {self.row}" if self.row else self.heading

    def label(self) -> str:
        """For people, in their language."""
        if self.page:
            return gettext("page %(number)d") % {"number": self.page}
        if self.row:
            return gettext("row %(number)d") % {"number": self.row}
        return self.heading


@dataclass(frozen=True, slots=True)
class Section:
    text: str
    place: Place = Place()


@dataclass(frozen=True, slots=True)
class Parsed:
    """`media_type` is the one that the content was read as."""

    sections: list[Section]
    media_type: str

    @property
    def text(self) -> str:
        return "\n\n".join(section.text for section in self.sections)


async def parse(data: bytes | Path, name: str, media_type: str = "") -> Parsed:
    """Reads PDF, DOCX, HTML, Markdown, text and CSV; `name` and `media_type` are hints from a stranger.

    At least one section, each with text, without NUL and lone surrogates. Raises `DocumentError`; OSError when `data`
    cannot be opened.
    """
    kind = _kind(data, name, media_type)
    arguments: dict[str, Any] = {"max_chars": MAX_CHARS}
    if kind == PDF:
        arguments["max_pages"] = MAX_PAGES
    if kind == "text/tab-separated-values":
        arguments["delimiter"] = "\t"
    try:
        output = await confined(f"tools_admin.documents.readers.{_READERS[kind]}:read", data, arguments, LIMITS)
    except Refused as refused:
        raise DocumentError(refused.code) from None
    return Parsed([Section(text, Place(**place)) for text, place in json.loads(output)], kind)


def _kind(data: bytes | Path, name: str, media_type: str) -> str:
    size = len(data) if isinstance(data, bytes) else data.stat().st_size
    if size == 0:
        raise DocumentError("empty")
    if size > MAX_BYTES:
        raise DocumentError("too_large")
    if isinstance(data, bytes):
        kind = kind_of(data, name, media_type)
    else:
        with data.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            kind = kind_of(content, name, media_type)
    if not kind:
        raise DocumentError("broken" if name.lower().endswith(NAMED) else "unknown")
    return kind
