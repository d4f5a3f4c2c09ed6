"""What all readers end with: sections as JSON, cleaned and counted."""

import json
from collections.abc import Iterable
from typing import Any

from agentapp.confined import Refused

# A text and its place: {"page": 3}, {"row": 17}, {"heading": "Travel › Hotels"} or {}.
Found = tuple[str, dict[str, Any]]


def packed(found: Iterable[Found], max_chars: int) -> bytes:
    sections: list[Found] = []
    total = 0
    for text, place in found:
        if not (text := cleaned(text)):
            continue
        if "heading" in place:
            place = {"heading": cleaned(place["heading"])[:300]}
        sections.append((text, place))
        total += len(text)
        if total > max_chars:
            raise Refused("too_long")
    if not sections:
        raise Refused("no_text")
    return json.dumps(sections, ensure_ascii=False).encode()


def cleaned(text: str) -> str:
    """Without what PostgreSQL or UTF-8 cannot hold, and without invisible padding around it."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode().strip()


def decoded(data: bytes) -> str:
    """Text of whatever encoding it says or seems to have; old Windows files are the usual other one."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    if sum(text.count(sign) for sign in map(chr, range(9))) > len(text) // 100:
        raise Refused("unknown")  # signs that no text has
    return text
