"""Files that tools made: taken out of a call's result before it is recorded."""

import base64
import binascii
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from uuid import UUID

from agentapp.confined import Refused
from agentapp.file_names import plain_name
from conversations.cleaning import clean
from conversations.files import save_file
from conversations.models import PICTURES, Artifact
from conversations.patience import patiently
from conversations.pictures import looks_like_picture, redrawn

MAX_FILES = 50
MAX_BYTES = 20_000_000
_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg"}


async def store_files(run_id: UUID, key: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """The result with its files on disk and their ids in their place; pictures are drawn anew."""
    kept = []
    for file in result["artifacts"][:MAX_FILES]:
        content = _content(file)
        if content is None:
            kept.append({name: value for name, value in file.items() if name != "data"})
            continue
        filename, content_type = plain_name(str(file["filename"])) or "file", clean(str(file["content_type"]))[:100]
        if looks_like_picture(content):
            filename, content_type, content = await _picture(filename, content)
        elif content_type in PICTURES:
            content_type = "application/octet-stream"  # these types are what we have drawn ourselves
        row = Artifact(run_id=run_id, key=key, filename=filename, content_type=content_type)
        await patiently(save_file, row, content)
        kept.append(row.described)
    return {**result, "artifacts": kept}


def _content(file: Mapping[str, Any]) -> bytes | None:
    try:
        content = base64.b64decode(file["data"])
    except (KeyError, binascii.Error):
        return None
    return content if len(content) <= MAX_BYTES else None


async def _picture(filename: str, content: bytes) -> tuple[str, str, bytes]:
    """One that cannot be drawn anew is a file to download."""
    try:
        content, content_type = await redrawn(content)
    except Refused:
        return filename, "application/octet-stream", content
    return f"{PurePath(filename).stem}{_ENDINGS[content_type]}", content_type, content
