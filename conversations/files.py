"""Files on disk and on their way out: written under a UUID, served so that nothing in them runs."""

from django.http import FileResponse, Http404

from conversations.models import PICTURES, StoredFile

_LOCKED = "default-src 'none'; sandbox"
# A preview is a page without scripts, forms, links outwards and origin, in a frame of ours.
_PREVIEW = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"
# What a call answers that ends with `serve`.
_BYTES = {"schema": {"type": "string", "format": "binary"}}
AS_FILE = {
    "responses": {
        200: {
            "description": "The bytes, as an attachment",
            "content": dict.fromkeys(("application/octet-stream", *PICTURES), _BYTES),
        }
    }
}


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
