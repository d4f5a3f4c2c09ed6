"""What a document is, by its content; its name and the type that came with it decide only among kinds of text."""

import codecs
from mmap import mmap
from pathlib import PurePath

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_TEXTS = {
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
}
NAMED = (".pdf", ".docx")  # names that promise more than text
_HEAD = 65_536
_BEGINNING = 4_096


def kind_of(content: bytes | mmap, name: str, media_type: str = "") -> str:
    """The media type of a document that can be read; empty for anything else, SVG included."""
    head = content[:_HEAD]
    if b"%PDF-" in head[:1_024]:
        return PDF
    if head.startswith(b"PK\x03\x04"):
        return DOCX if content.find(b"word/document.xml") >= 0 else ""  # names stand there as they are
    ending, text = PurePath(name.lower()).suffix, _text(head, whole=len(content) <= _HEAD)
    if text is None or ending in NAMED:
        return ""
    begin = text[:_BEGINNING].lower()
    if "<svg" in begin and "<html" not in begin:
        return ""
    if begin.lstrip("\ufeff \t\r\n").startswith(("<!doctype html", "<html")):
        return "text/html"
    given = media_type.partition(";")[0].strip().lower()
    return _TEXTS.get(ending) or (given if given in _TEXTS.values() else "text/plain")


def _text(head: bytes, *, whole: bool) -> str | None:
    """Text as such files are written: UTF-8, UTF-16 with its mark, or Latin-1 without any control characters."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    elif b"\x00" in head:
        return None
    else:
        encodings = ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(head, final=whole)
        except UnicodeDecodeError:
            continue
        odd = sum(ord(c) < 32 and c not in "\t\n\r\f\x1b" for c in text[:_BEGINNING])
        return text if odd * 50 <= min(len(text), _BEGINNING) else None
    return None
