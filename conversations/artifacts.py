"""Files that tools made: taken out of a call's result before it is recorded, served so that nothing in them runs."""

import base64
import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.http import FileResponse, Http404

from accounts.models import User
from conversations.cleaning import clean
from conversations.models import Artifact

MAX_FILES = 50
MAX_BYTES = 20_000_000

# What a browser may show as a picture, by its first bytes; everything else is for downloading. SVG holds scripts.
_PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_LOCKED = "default-src 'none'; sandbox"
# A preview is a page without scripts, forms, links outwards and origin, in a frame of ours.
_PREVIEW = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"


def store_files(run_id: UUID, key: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """The result with its files on disk and their ids in their place."""
    kept = []
    for file in result["artifacts"][:MAX_FILES]:
        content = base64.b64decode(file["data"]) if "data" in file else b""
        if "data" not in file or len(content) > MAX_BYTES:
            kept.append({name: value for name, value in file.items() if name != "data"})
            continue
        row = Artifact(run_id=run_id, key=key, filename=_name(file["filename"]), size=len(content))
        row.content_type = clean(str(file["content_type"]))[:100]
        row.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        row.path.write_bytes(content)
        row.save()
        kept.append({"id": str(row.id), "filename": row.filename, "content_type": row.content_type, "size": row.size})
    return {**result, "artifacts": kept}


def serve(user: User, artifact_id: UUID, *, preview: bool = False) -> FileResponse:
    """Always as an attachment of a harmless type; `preview` shows texts and pages, for a frame in our page."""
    row = Artifact.objects.visible_to(user).filter(id=artifact_id).first()
    if row is None or not row.path.is_file():
        raise Http404
    with row.path.open("rb") as file:
        head = file.read(16)
    picture = next((kind for magic, kind in _PICTURES.items() if head.startswith(magic)), None)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        picture = "image/webp"
    kind = picture or "application/octet-stream"
    if preview and not picture:
        kind = "text/html; charset=utf-8" if row.content_type == "text/html" else "text/plain; charset=utf-8"
    response = FileResponse(row.path.open("rb"), as_attachment=not preview, filename=row.filename, content_type=kind)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = _PREVIEW if preview else _LOCKED
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["Cache-Control"] = "private, max-age=3600"
    if preview:
        response["X-Frame-Options"] = "SAMEORIGIN"
    return response


def _name(name: str) -> str:
    """A name without a path and without signs that change how it reads."""
    plain = re.sub(r"[\x00-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]", "", clean(str(name)))
    return plain.replace("\\", "/").rpartition("/")[2].strip(" .")[:200] or "file"


@receiver(post_delete, sender=Artifact)
def _remove(instance: Artifact, **_: object) -> None:
    instance.path.unlink(missing_ok=True)
