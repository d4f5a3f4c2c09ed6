"""Pictures of people and tools are drawn anew, in a confined process, before anybody is shown them (`redrawing.py`)."""

import json

from agentapp.confined import Limits, confined

LIMITS = Limits(memory=1_500_000_000, cpu=20, seconds=40.0, output=20_000_000)

_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")


def looks_like_picture(data: bytes) -> bool:
    """By its first bytes, whatever its name says. SVG is text that can hold scripts, and no picture here."""
    return data.startswith(_MAGIC) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


async def redrawn(data: bytes) -> tuple[bytes, str]:
    """The picture anew, as PNG or JPEG, and its media type. Raises `Refused`: `picture` (broken, or no picture),
    `pixels` (too many), and what `confined` refuses with."""
    output = await confined("conversations.redrawing:redraw", data, limits=LIMITS)
    head, _, body = output.partition(b"\n")
    return body, str(json.loads(head)["content_type"])
