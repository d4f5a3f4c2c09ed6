"""Exceptions of the engine.

EngineError
├── ModelError                what a model call may raise
│   ├── ModelUnavailable      transient: timeout, connection, 408, 409, 429, 5xx
│   │   ├── ModelPaused       it is being left alone: not even asked
│   │   └── OutOfTime         the time allowed for trying again is over
│   ├── ModelRefused          401, 402, 403, 404, exhausted quota
│   ├── ContextOverflow       the request is too long for the model
│   ├── BadModelRequest       any other 4xx
│   ├── IncompleteStream      the stream ended without an end
│   ├── LimitReached          the journal allows no further call of this size
│   └── ContentFiltered       a filter or a refusal
├── StructuredOutputError     no level of the ladder gave a usable object
├── PlanError                 a plan that must not run
├── ScriptExhausted           a scripted model was called too often
├── RunSuspended              the run waits for a person
├── UnknownOutcome            an irreversible call may or may not have happened
├── ReplayMismatch            the code asks for another call than the journal recorded
└── PairingError              a message list that providers would refuse
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class EngineError(Exception):
    """Base of all exceptions that the engine raises on purpose."""


class ModelError(EngineError):
    """A model call failed. `code` is the provider's own code, for logs."""

    def __init__(self, message: str = "", *, status: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code


class ModelUnavailable(ModelError):
    """Trying again later may help; `retry_after` is the provider's wish in seconds."""

    def __init__(
        self,
        message: str = "",
        *,
        retry_after: float | None = None,
        status: int | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message, status=status, code=code)
        self.retry_after = retry_after


class ModelPaused(ModelUnavailable):
    """The model was not asked: it has failed too often, or its queue is too long. Asking again at once is useless."""


class OutOfTime(ModelUnavailable):
    """The run's limit on seconds leaves no time for another attempt."""


class ModelRefused(ModelError):
    """The provider will not serve this key, model or account."""


class ContextOverflow(ModelError):
    """The request does not fit the model's context."""


class BadModelRequest(ModelError):
    """The request is wrong; sending it again unchanged cannot help."""


class IncompleteStream(ModelError):
    """The stream broke off; nothing it carried may be executed."""


class LimitReached(ModelError):
    """A limit that only the journal's keeper knows forbids the call, such as a budget that many runs share.

    It is raised before the effect. The loop then makes one last call without tools, whose request says so by its
    `last`; a keeper that set something aside for it lets that one through.
    """

    def __init__(self, limit: str, message: str = "") -> None:
        super().__init__(message or f"the limit on {limit.replace('_', ' ')} was reached")
        self.limit = limit


class ContentFiltered(ModelError):
    """A content filter, or the model's own refusal."""


class StructuredOutputError(EngineError):
    """No reply could be read; the message holds the beginning of the last one."""


class PlanError(EngineError):
    """A plan was rejected before anything ran."""

    def __init__(self, code: str, step_ids: Sequence[str] = (), message: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.step_ids = tuple(step_ids)
        self.message = message


class ScriptExhausted(EngineError):
    """A `ScriptedChatModel` has no reply left."""


class RunSuspended(EngineError):
    """The run waits for a person; run it again with the same journal to go on."""

    def __init__(self, reason: str = "approval", key: str = "") -> None:
        super().__init__(f"{reason}: {key}")
        self.reason = reason
        self.key = key


class UnknownOutcome(EngineError):
    """A call that must not be repeated was started and never finished."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the outcome of {key} is unknown")
        self.key = key


class ReplayMismatch(EngineError):
    """The call at this position differs from the recorded one."""

    def __init__(self, key: str, message: str = "") -> None:
        super().__init__(message or f"{key} was recorded with another name or other arguments")
        self.key = key


class PairingError(EngineError):
    """Tool calls and tool messages do not match; `problems` names each place."""

    def __init__(self, problems: Sequence[Any]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
