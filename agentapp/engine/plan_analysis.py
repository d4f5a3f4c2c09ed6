"""Did the plan achieve the goal? A model's judgement, in bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .journal import Journal
from .messages import Content, Message
from .models import ChatModel
from .plan_prompts import ANALYST, evidence_text, request_text, with_images
from .plans import Plan
from .structured import structured_llm_call
from .tokens import budget_for

RESULT_CHARS = 50_000
_SCHEMA = {
    "type": "object",
    "properties": {
        "achieved": {"type": "boolean"},
        "confidence": {"type": "number"},
        "final_answer": {"type": "string"},
        "reasoning": {"type": "string"},
    },
    "required": ["achieved"],
}


@dataclass(frozen=True, slots=True)
class Analysis:
    """`confidence` is between 0 and 1: how sure the judgement is."""

    achieved: bool = False
    confidence: float = 0.0
    final_answer: str = ""
    reasoning: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class PlanAnalyzer:
    """Judges what a plan came to."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model

    async def analyze(
        self,
        goal: Content,
        plan: Plan,
        *,
        heard: Sequence[str] = (),
        model: ChatModel | None = None,
        journal: Journal | None = None,
        scope: str = "analysis",
    ) -> Analysis:
        """A reply that cannot be read means: not achieved, with no confidence."""
        steps = plan.everything
        share = max(1_000, min(RESULT_CHARS, budget_for(self.model) * 3 // max(1, len(steps))))
        text = request_text(goal, "", heard, evidence_text(steps, share))
        result = await structured_llm_call(
            model or self.model,
            [Message.system(ANALYST), Message.user(with_images(goal, text))],
            _SCHEMA,
            function_name="judge",
            parse_fn=read_analysis,
            default_value=Analysis(),
            regex_fallback=rescue,
            journal=journal,
            scope=scope,
            role="analysis",
        )
        analysis: Analysis = result.value
        return analysis


def read_analysis(data: Mapping[str, Any]) -> Analysis:
    achieved = data["achieved"]
    if isinstance(achieved, str):
        achieved = {"true": True, "false": False}[achieved.strip().lower()]
    if not isinstance(achieved, bool):
        raise ValueError("`achieved` is true or false")
    return Analysis(
        achieved, _clamped(data.get("confidence")), _text(data.get("final_answer")), _text(data.get("reasoning"))
    )


def rescue(text: str) -> dict[str, Any] | None:
    """The fields of an object that is no JSON, such as one with unescaped quotes in its texts."""
    achieved = re.search(r'"achieved"\s*:\s*"?(true|false)', text, re.IGNORECASE)
    if achieved is None:
        return None
    confidence = re.search(r'"confidence"\s*:\s*"?(-?\d+(?:\.\d+)?)', text)
    return {
        "achieved": achieved.group(1).lower() == "true",
        "confidence": float(confidence.group(1)) if confidence else 0.0,
        "final_answer": _rescued(text, "final_answer"),
        "reasoning": _rescued(text, "reasoning"),
    }


def _rescued(text: str, name: str) -> str:
    """Up to a quote that ends the value: before another field, or before the end of the object."""
    found = re.search(rf'"{name}"\s*:\s*"(.*?)"\s*(?:,\s*"\w+"\s*:|\}}\s*(?:```\s*)?\Z)', text, re.DOTALL)
    return found.group(1) if found else ""


def _clamped(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(1.0, max(0.0, number)) if math.isfinite(number) else 0.0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
