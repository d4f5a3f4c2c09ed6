"""Markdown, and what other kinds are turned into: a section for each heading, known by the headings above it."""

import re
from collections.abc import Iterator

from tools_admin.documents.readers.sections import Found, decoded, packed

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.+?)[ \t#]*$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")


def read(data: bytes, max_chars: int) -> bytes:
    return packed(sections(decoded(data)), max_chars)


def sections(text: str) -> Iterator[Found]:
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""

    def found() -> Found:
        heading = " › ".join(title for _, title in path)
        return "\n".join(lines), {"heading": heading} if heading else {}

    for line in text.splitlines():
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence):
                fence = ""
        heading = None if fence else _HEADING.match(line)
        if heading:
            yield from _unless_bare(found())
            level = len(heading[1])
            path = [*((above, title) for above, title in path if above < level), (level, heading[2].strip("*_ "))]
            lines = []
        lines.append(line)
    yield from _unless_bare(found())


def _unless_bare(found: Found) -> Iterator[Found]:
    """A heading without a text says nothing that the headings below it do not say."""
    text, _ = found
    if any(line.strip() and not _HEADING.match(line) for line in text.splitlines()):
        yield found
