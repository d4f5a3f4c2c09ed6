"""Sections → passages: as much text as one thought takes, cut where the text itself is divided."""

import re
from collections.abc import Iterator
from dataclasses import replace

from tools_admin.documents.parsing import Section

MOST_CHARS = 1_400
OVERLAP = 150

# Where a text is best cut, the best first: paragraphs, lines, sentences, words.
_CUTS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"(?<=[.!?…])\s+"), re.compile(r"\s+"))


def passages(sections: list[Section]) -> Iterator[Section]:
    """Each at most `MOST_CHARS` long; within a section one begins with the last words of the one before."""
    for section in sections:
        for text in _pieces(section.text):
            yield replace(section, text=text)


def _pieces(text: str) -> Iterator[str]:
    begin = 0
    while len(text) - begin > MOST_CHARS:
        end = begin + _cut(text[begin : begin + MOST_CHARS])
        yield text[begin:end].strip()
        begin = _overlapping(text, begin, end)
    if rest := text[begin:].strip():
        yield rest


def _cut(window: str) -> int:
    """Where the window ends best: in its second half, so that no passage is much shorter than it may be."""
    for pattern in _CUTS:
        ends = [found.end() for found in pattern.finditer(window, len(window) // 2)]
        if ends:
            return ends[-1]
    return len(window)


def _overlapping(text: str, begin: int, end: int) -> int:
    """Where the next passage begins: at the beginning of a word some way before this one's end."""
    space = re.compile(r"\s+").search(text, max(begin + 1, end - OVERLAP), end)
    return space.end() if space and space.end() < end else end
