"""What can go wrong with a conversation, in words for its user.

ConversationError
├── EmptyMessage
├── MessageTooLong
├── TooManyMessages
├── UnknownMode
├── NotFound
├── RunActive
├── NotAQuestion
├── BadExport
├── ChangedMeanwhile
├── BranchChanged
├── AlreadyRead
├── AlreadyDecided
├── ApprovalExpired
├── InvalidArguments
├── NotLasting
├── InvalidDraft
├── NothingToResolve
├── RunEnded
├── LeaseLost        (inside a worker: another one has taken the run over, or it was stopped)
├── PersonDisabled   (inside a worker)
└── ModelDisabled    (inside a worker)
"""

from collections.abc import Iterable
from typing import Any, Literal

from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _

from agentapp.engine import EngineError


class ConversationError(Exception):
    """`code` is stable and part of the API; the message says what to do."""

    code = "conversation_error"
    status = 400

    def __init__(self, message: Any, **values: Any) -> None:
        super().__init__(message, values)

    @property
    def message(self) -> str:
        """In the language of whoever reads it: it may have been raised in a thread that knows none."""
        message, values = self.args
        shown = {k: number_format(v, force_grouping=True) if isinstance(v, int) else v for k, v in values.items()}
        return str(message) % shown if shown else str(message)

    def __str__(self) -> str:
        return self.message


class EmptyMessage(ConversationError):
    code = "empty_message"

    def __init__(self) -> None:
        super().__init__(_("The message is empty. Write something and send it again."))


class MessageTooLong(ConversationError):
    code = "message_too_long"
    status = 413

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(
            _("The message has %(length)s characters; %(limit)s are possible. Shorten it or send it in parts."),
            length=length,
            limit=limit,
        )


class TooManyMessages(ConversationError):
    code = "too_many_messages"
    status = 429

    def __init__(self, limit: int) -> None:
        super().__init__(
            _(
                "%(limit)s messages wait already for the agent to read them. "
                "Let it go on, or stop it and send one message."
            ),
            limit=limit,
        )


class UnknownMode(ConversationError):
    code = "unknown_mode"

    def __init__(self, modes: Iterable[str]) -> None:
        super().__init__(_("There is no such mode. Choose one of: %(modes)s."), modes=", ".join(modes))


_NOT_FOUND = {
    "agent": _("This agent does not exist or is not yours."),
    "attachment": _("An attached file does not exist any more or is not yours. Remove it and send again."),
    "conversation": _("This conversation does not exist or is not yours."),
    "message": _("This message does not exist or is not yours."),
    "question": _("This question does not exist or is not yours."),
    "request": _("This request does not exist or is not yours."),
    "run": _("This run does not exist or is not yours."),
    "webhook": _("This webhook does not exist or is not yours."),
    "delivery": _("This delivery does not exist or is not yours."),
}


class NotFound(ConversationError):
    """There is no such row, or it belongs to somebody else: both look the same."""

    code = "not_found"
    status = 404

    def __init__(
        self,
        what: Literal[
            "agent", "attachment", "conversation", "delivery", "message", "question", "request", "run", "webhook"
        ],
    ) -> None:
        super().__init__(_NOT_FOUND[what])


class RunActive(ConversationError):
    code = "run_active"
    status = 409

    def __init__(self) -> None:
        super().__init__(_("The agent is still working in this conversation. Stop it first, or wait until it is done."))


class NotAQuestion(ConversationError):
    code = "not_a_question"

    def __init__(self) -> None:
        super().__init__(_("Only your own messages can be edited; an answer can be made anew."))


class RunEnded(ConversationError):
    code = "run_ended"
    status = 409

    def __init__(self) -> None:
        super().__init__(_("This run has ended already."))


class BadExport(ConversationError):
    """What is to be brought back is no export of ours, or was changed; the message says where."""

    code = "bad_export"
    status = 422


class ChangedMeanwhile(ConversationError):
    code = "changed_meanwhile"
    status = 412

    def __init__(self) -> None:
        super().__init__(_("This was changed by somebody else meanwhile. Read it again, then change it."))


class BranchChanged(ConversationError):
    code = "branch_changed"
    status = 409

    def __init__(self) -> None:
        super().__init__(_("Another branch is shown now, so the list has changed. Begin it anew, without a cursor."))


class AlreadyRead(ConversationError):
    code = "already_read"
    status = 409

    def __init__(self) -> None:
        super().__init__(_("The agent has read this message already; it cannot be taken back."))


class AlreadyDecided(ConversationError):
    code = "already_decided"
    status = 409

    def __init__(self, state: Any) -> None:
        super().__init__(_("This request has been decided otherwise already: %(state)s."), state=state)


class ApprovalExpired(ConversationError):
    code = "approval_expired"
    status = 410

    def __init__(self) -> None:
        super().__init__(_("This request has expired without a decision; the agent was told so."))


class InvalidArguments(ConversationError):
    code = "invalid_arguments"
    status = 422

    def __init__(self, problem: str) -> None:
        super().__init__(_("The edited arguments do not fit the tool: %(problem)s"), problem=problem)


class NotApprover(ConversationError):
    code = "not_approver"
    status = 403

    def __init__(self, group: str) -> None:
        super().__init__(_("Members of %(group)s decide on this, and never on calls of their own."), group=group)


class NotLasting(ConversationError):
    code = "not_lasting"
    status = 422

    def __init__(self, reason: Any) -> None:
        super().__init__(_("%(reason)s Approve this call instead."), reason=reason)


class InvalidDraft(ConversationError):
    code = "invalid_draft"

    def __init__(self, problem: str) -> None:
        super().__init__(_("This draft cannot be published. %(problem)s"), problem=problem)


class NothingToResolve(ConversationError):
    code = "nothing_to_resolve"
    status = 409

    def __init__(self) -> None:
        super().__init__(_("No call of this run waits to be settled."))


class InvalidAnswer(ConversationError):
    code = "invalid_answer"
    status = 422

    def __init__(self, problem: str) -> None:
        super().__init__(_("The answer does not fit what was asked: %(problem)s"), problem=problem)


class NothingToAnswer(ConversationError):
    code = "nothing_to_answer"
    status = 409

    def __init__(self) -> None:
        super().__init__(_("This question is not open any more: it was answered, or the run went on without it."))


class PersonDisabled(Exception):
    """The person whose run it is was disabled while it was going on."""


class ModelDisabled(Exception):
    """The run's model was disabled while it was going on."""


class LeaseLost(EngineError):
    """Another worker owns the run now, or it was stopped: no call begins any more. No loop takes it for a failure of
    what it asked."""
