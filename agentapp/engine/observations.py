"""What the model is told of the results of a run, within one budget for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .tokens import text_tokens
from .tools import observation_for_model

MAX_TOKENS = 40_000
HEAD_CHARS = 500


class Observations:
    """Counts what has been told. Beyond the budget a result keeps a short head only."""

    def __init__(self) -> None:
        self._told = 0

    def tell(self, result: Mapping[str, Any]) -> str:
        text = observation_for_model(result)
        edited = result.get("executed_arguments")
        if edited is not None:
            text = f"[A person changed the arguments to {edited} before the call ran.]\n{text}"
        self._told += text_tokens(text)
        if self._told <= MAX_TOKENS or len(text) <= HEAD_CHARS:
            return text
        notice = f"[cut: the results of this run exceed their budget of {MAX_TOKENS:,} tokens]"
        return f"{text[:HEAD_CHARS]}\n{notice}"
