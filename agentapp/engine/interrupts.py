"""What a user says while a run is going on."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .messages import Content, Message

MARKER = "[USER INTERRUPT]"


@dataclass(frozen=True, slots=True)
class Interrupt:
    id: str
    content: Content

    @property
    def text(self) -> str:
        return Message.user(self.content).text

    def to_dict(self) -> dict[str, Any]:
        """The recorded form; `images` are parts of a message, where it has any."""
        images = [] if isinstance(self.content, str) else [p for p in self.content if p.get("type") != "text"]
        return {"id": self.id, "text": self.text, **({"images": images} if images else {})}


class InterruptQueue:
    """Messages that wait for the next model call. Whoever owns the run keeps what is left when it ends."""

    def __init__(self) -> None:
        self._waiting: list[Interrupt] = []

    def put(self, content: Content, *, id: str | None = None) -> str:
        interrupt = Interrupt(id or uuid.uuid4().hex, content)
        self._waiting.append(interrupt)
        return interrupt.id

    def recall(self, id: str) -> bool:
        """Takes an interrupt back; False once a model call has it."""
        kept = [interrupt for interrupt in self._waiting if interrupt.id != id]
        recalled = len(kept) < len(self._waiting)
        self._waiting = kept
        return recalled

    def drain(self) -> list[str]:
        return [interrupt.text for interrupt in self.take()]

    def take(self) -> list[Interrupt]:
        taken, self._waiting = self._waiting, []
        return taken

    @property
    def ids(self) -> list[str]:
        return [interrupt.id for interrupt in self._waiting]

    def put_back(self, interrupts: Sequence[Interrupt]) -> None:
        """For a model call that failed before anyone saw them."""
        self._waiting[:0] = interrupts

    def __len__(self) -> int:
        return len(self._waiting)


def interrupt_message(texts: Sequence[str]) -> Message:
    """One pinned message for all of them."""
    if len(texts) == 1:
        return Message.user(f"{MARKER}: {texts[0]}", pinned=True)
    numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))
    return Message.user(f"{MARKER}: the user sent {len(texts)} messages:\n{numbered}", pinned=True)


def images_of(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The image parts of recorded interrupts."""
    return [image for record in records for image in record.get("images", ())]
