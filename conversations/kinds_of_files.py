"""What a file is, by its content; its name decides only between kinds of text."""

from pathlib import PurePath

from conversations.pictures import looks_like_picture

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_TEXTS = {".md": "text/markdown", ".markdown": "text/markdown", ".csv": "text/csv", ".tsv": "text/csv"}
_BEGINNING = 4_096


def kind_of(content: bytes, filename: str) -> str:
    """`image`, or the media type of a document that can be read; empty for anything else, SVG included."""
    if looks_like_picture(content):
        return "image"
    if b"%PDF-" in content[:1_024]:
        return "application/pdf"
    if content.startswith(b"PK\x03\x04"):
        return DOCX if b"word/document.xml" in content else ""  # names stand there as they are
    text = _text(content)
    if text is None:
        return ""
    begin = text[:_BEGINNING].lower()
    if "<svg" in begin and "<html" not in begin:
        return ""
    if begin.lstrip("\ufeff \t\r\n").startswith(("<!doctype html", "<html")):
        return "text/html"
    ending = PurePath(filename).suffix.lower()
    return "text/html" if ending in (".html", ".htm") else _TEXTS.get(ending, "text/plain")


def _text(content: bytes) -> str | None:
    """Text as such files are written: UTF-8, UTF-16 with its mark, or Latin-1 without any control characters."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    elif b"\x00" in content:
        return None
    else:
        encodings = ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        odd = sum(ord(c) < 32 and c not in "\t\n\r\f\x1b" for c in text[:_BEGINNING])
        return text if odd * 50 <= min(len(text), _BEGINNING) else None
    return None
