"""Files on disk and on their way out: written under a UUID, served so that nothing in them runs."""

import re

from django.http import FileResponse, Http404

from conversations.cleaning import clean
from conversations.models import StoredFile

MAX_NAME = 200

_LOCKED = "default-src 'none'; sandbox"
# A preview is a page without scripts, forms, links outwards and origin, in a frame of ours.
_PREVIEW = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"
_CHANGES_READING = re.compile(r"[\x00-\x1f\x7f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def save_file(row: StoredFile, content: bytes) -> None:
    """The bytes, then the row that stands for them."""
    row.size = len(content)
    row.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    row.path.write_bytes(content)
    try:
        row.save()
    except BaseException:
        row.path.unlink(missing_ok=True)
        raise


def serve(row: StoredFile | None, *, preview: bool = False) -> FileResponse:
    """Always as an attachment of a harmless type; `preview` shows texts and pages, for a frame in our page."""
    if row is None or not row.path.is_file():
        raise Http404
    kind = row.content_type if row.is_picture else "application/octet-stream"
    if preview and not row.is_picture:
        kind = "text/html; charset=utf-8" if row.content_type == "text/html" else "text/plain; charset=utf-8"
    response = FileResponse(row.path.open("rb"), as_attachment=not preview, filename=row.filename, content_type=kind)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = _PREVIEW if preview else _LOCKED
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["Cache-Control"] = "private, max-age=3600"
    if preview:
        response["X-Frame-Options"] = "SAMEORIGIN"
    return response


def plain_name(name: str) -> str:
    """A name without a path and without signs that change how it reads."""
    plain = _CHANGES_READING.sub("", clean(str(name))).replace("\\", "/").rpartition("/")[2].strip(" .")
    if len(plain) <= MAX_NAME:
        return plain or "file"
    stem, dot, ending = plain.rpartition(".")
    return f"{stem[: MAX_NAME - len(ending) - 1]}.{ending}" if dot and len(ending) <= 20 else plain[:MAX_NAME]
