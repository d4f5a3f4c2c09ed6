"""Reasoning that a model writes into its text, between think tags."""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


class ThinkFilter:
    """Splits streamed text into answer and reasoning, also when a tag is cut in two by a chunk.

    A block counts only where it begins a line, so that prose about tags stays prose. An unclosed block is
    reasoning to its end; a closing tag without an opening one is dropped.
    """

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._line_start = True
        self._after_block = False

    def feed(self, text: str) -> tuple[str, str]:
        if not self._held and not self._thinking and "<" not in text:
            return self._plain(text), ""
        self._held += text
        return self._drain(final=False)

    def flush(self) -> tuple[str, str]:
        return self._drain(final=True)

    def _drain(self, *, final: bool) -> tuple[str, str]:
        answer, reasoning = "", ""
        while self._held:
            tag, position = self._next_tag()
            if tag:
                before, self._held = self._held[:position], self._held[position + len(tag) :]
            else:
                keep = 0 if final else _partial_tag(self._held)
                before, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
            if self._thinking:
                reasoning += before
            else:
                answer += self._plain(before)
            if not tag:
                break
            answer += self._turn(tag)
        return answer, reasoning

    def _next_tag(self) -> tuple[str, int]:
        found = [(self._held.find(tag), tag) for tag in ((CLOSE,) if self._thinking else (OPEN, CLOSE))]
        position, tag = min(((p, t) for p, t in found if p >= 0), default=(-1, ""))
        return tag, position

    def _turn(self, tag: str) -> str:
        if tag == CLOSE:
            self._after_block = self._after_block or self._thinking
            self._thinking = False
            return ""
        if self._line_start:
            self._thinking = True
            return ""
        return self._plain(tag)

    def _plain(self, text: str) -> str:
        if self._after_block:  # blank lines between reasoning and answer belong to neither
            text = text.lstrip()
            self._after_block = not text
        if "\n" in text:
            self._line_start = not text.rpartition("\n")[2].strip()
        elif self._line_start:
            self._line_start = not text or text.isspace()
        return text


def _partial_tag(text: str) -> int:
    """How many characters at the end may be the beginning of a tag."""
    start = text.rfind("<", -len(CLOSE) + 1)
    if start < 0:
        return 0
    tail = text[start:]
    return len(tail) if OPEN.startswith(tail) or CLOSE.startswith(tail) else 0


def split_thinking(text: str) -> tuple[str, str]:
    """Answer and reasoning of a whole text."""
    if "<think>" not in text and "</think>" not in text:
        return text, ""
    think = ThinkFilter()
    first, last = think.feed(text), think.flush()
    return first[0] + last[0], first[1] + last[1]
