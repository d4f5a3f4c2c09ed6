"""Drafts: the form and the bounds that an answer must keep before it is published. Code alone decides about them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import EngineError, StructuredOutputError
from .journal import Journal
from .json_schema import schema_fault
from .json_text import extract_json
from .messages import Content, Message
from .models import ChatModel
from .structured import structured_llm_call

# The form of a draft that is nothing but text.
TEXT: Mapping[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "minLength": 1}},
    "required": ["answer"],
    "additionalProperties": False,
}
_TASK = """\
Put the answer into the given form. Take every value from the answer; invent none, and leave out what is optional and \
not in it."""


class BadDraft(EngineError):
    """The answer could not be brought into its form, or is out of its bounds."""


class NotDurable(EngineError):
    """A signature is waited for over days: that needs a journal that outlives the process."""


@dataclass(frozen=True, slots=True)
class DraftRules:
    """`schema` is the form (empty: a text), `limits` are bounds of numeric fields (`{"amount": {"min": 0, "max":
    1000}}`), `allowed` the values that a field may have (`{"target": ["a", "b"]}`)."""

    schema: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    allowed: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def form_fault(self, draft: Any) -> str | None:
        """What is wrong with its form."""
        if not isinstance(draft, dict):
            return "it is no object"
        return schema_fault(self.schema or TEXT, draft)

    def fault(self, draft: Any) -> str | None:
        """Why this draft must not be published, whoever approved of it."""
        problem = self.form_fault(draft)
        if problem is not None:
            return problem
        for name, bounds in self.limits.items():
            if (problem := _out_of_bounds(draft.get(name), bounds)) is not None:
                return f"{name}: {problem}"
        for name, values in self.allowed.items():
            if draft.get(name) not in list(values):
                return f"{name}: {draft.get(name)!r} is none of {', '.join(map(str, values))}"
        return None


async def draft_of(
    model: ChatModel,
    request: Content,
    answer: str,
    rules: DraftRules,
    *,
    journal: Journal | None = None,
    scope: str = "draft",
) -> dict[str, Any]:
    """An answer in its form: as it is, read out of its text, or put into it by one more call. Raises `BadDraft`."""
    if not rules.schema:
        return {"answer": answer}
    found = extract_json(answer)
    if found is not None and rules.form_fault(found) is None:
        return found
    text = f"Request:\n{Message.user(request).text}\n\nAnswer:\n{answer}"
    try:
        result = await structured_llm_call(
            model,
            [Message.system(_TASK), Message.user(text)],
            dict(rules.schema),
            function_name="draft",
            parse_fn=lambda data: data if rules.form_fault(data) is None else None,
            journal=journal,
            scope=scope,
            role="draft",
        )
    except StructuredOutputError as error:
        raise BadDraft(f"the answer has not the form that is asked for: {error}") from None
    draft: dict[str, Any] = result.value
    return draft


def draft_text(draft: Mapping[str, Any], rules: DraftRules) -> str:
    """A draft as people read it, in Markdown."""
    if not rules.schema:
        return str(draft["answer"])
    return "\n".join(f"- **{name}:** {_shown(value)}" for name, value in draft.items())


def require_durable(journal: Any) -> None:
    """Raises `NotDurable` for a journal that does not say of itself that it is `durable`."""
    if not getattr(journal, "durable", False):
        raise NotDurable("a signature needs a durable journal; this one is kept in memory")


def _out_of_bounds(value: Any, bounds: Mapping[str, float | None]) -> str | None:
    """Why a figure is out of bounds. Without a `min` it must not be negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "it must be a number"
    if not math.isfinite(value):
        return "it must be finite"
    least, most = bounds.get("min") or 0, bounds.get("max")
    if value < least:
        return f"{value:g} is less than {least:g}"
    return f"{value:g} is more than {most:g}" if most is not None and value > most else None


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
