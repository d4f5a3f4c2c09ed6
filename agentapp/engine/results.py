"""What an agent hands back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .messages import Message, ToolCall, Usage
from .plans import Plan
from .tools import Artifact


@dataclass(frozen=True, slots=True)
class StepResult:
    """One tool call, or with `tool_name` None the final answer."""

    iteration: int
    tool_name: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    observation: str = ""
    error: str | None = None
    artifacts: Sequence[Artifact] = ()
    elapsed: float = 0.0
    reasoning: str = ""
    content_type: str = "text/plain"


@dataclass(slots=True)
class AgentResult:
    """The end of a run. An equal journal gives an equal result.

    `answer` is the loop's own answer and `streamed` tells that it went out as answer events while it was made.
    `stream_answer()` adds its call to `usage` and leaves in `delivered` the whole text that it gave out. `plan` is the
    last plan of a planned loop.
    """

    answer: str
    steps: list[StepResult]
    iterations: int
    usage: Usage = field(compare=False)
    messages: list[Message]
    stop_reason: str
    error: str | None = None
    streamed: bool = False
    attempt: int = 0
    delivered: str | None = field(default=None, compare=False)
    plan: Plan | None = None

    @property
    def tool_steps(self) -> list[StepResult]:
        return [step for step in self.steps if step.tool_name is not None]


def tool_steps(
    iteration: int, reasoning: str, calls: Sequence[ToolCall], results: Sequence[Mapping[str, Any]]
) -> list[StepResult]:
    """The steps of one batch, from its recorded results."""
    return [
        StepResult(
            iteration,
            call.name,
            result.get("executed_arguments", call.arguments),
            "" if result["is_error"] else result["content"],
            result["content"] if result["is_error"] else None,
            tuple(Artifact.from_dict(artifact) for artifact in result["artifacts"]),
            result["elapsed"],
            reasoning,
            result["content_type"],
        )
        for call, result in zip(calls, results, strict=True)
    ]
