"""What can go wrong with a conversation, in words for its user.

ConversationError
├── EmptyMessage
├── MessageTooLong
├── TooManyMessages
├── UnknownMode
├── NotFound
├── RunActive
├── NotAQuestion
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


class ConversationError(Exception):
    """`code` is stable and part of the API; the message says what to do."""

    code = "conversation_error"
    status = 400

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class EmptyMessage(ConversationError):
    code = "empty_message"

    def __init__(self) -> None:
        super().__init__("The message is empty. Write something and send it again.")


class MessageTooLong(ConversationError):
    code = "message_too_long"
    status = 413

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(
            f"The message has {length:,} characters; {limit:,} are possible. Shorten it or send it in parts."
        )


class TooManyMessages(ConversationError):
    code = "too_many_messages"
    status = 429

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"{limit} messages wait already for the agent to read them. Let it go on, or stop it and send one message."
        )


class UnknownMode(ConversationError):
    code = "unknown_mode"

    def __init__(self, modes: Iterable[str]) -> None:
        super().__init__(f"There is no such mode. Choose one of: {', '.join(modes)}.")


class NotFound(ConversationError):
    """There is no such row, or it belongs to somebody else: both look the same."""

    code = "not_found"
    status = 404

    def __init__(self, what: str) -> None:
        super().__init__(f"This {what} does not exist or is not yours.")


class RunActive(ConversationError):
    code = "run_active"
    status = 409

    def __init__(self) -> None:
        super().__init__("The agent is still working in this conversation. Stop it first, or wait until it is done.")


class NotAQuestion(ConversationError):
    code = "not_a_question"

    def __init__(self) -> None:
        super().__init__("Only your own messages can be edited; an answer can be made anew.")


class RunEnded(ConversationError):
    code = "run_ended"
    status = 409

    def __init__(self) -> None:
        super().__init__("This run has ended already.")


class AlreadyRead(ConversationError):
    code = "already_read"
    status = 409

    def __init__(self) -> None:
        super().__init__("The agent has read this message already; it cannot be taken back.")


class AlreadyDecided(ConversationError):
    code = "already_decided"
    status = 409

    def __init__(self, state: str) -> None:
        super().__init__(f"This request has been decided otherwise already: {state}.")


class ApprovalExpired(ConversationError):
    code = "approval_expired"
    status = 410

    def __init__(self) -> None:
        super().__init__("This request has expired without a decision; the agent was told so.")


class InvalidArguments(ConversationError):
    code = "invalid_arguments"
    status = 422

    def __init__(self, problem: str) -> None:
        super().__init__(f"The edited arguments do not fit the tool: {problem}")


class NotLasting(ConversationError):
    code = "not_lasting"
    status = 422

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason} Approve this call instead.")


class InvalidDraft(ConversationError):
    code = "invalid_draft"

    def __init__(self, problem: str) -> None:
        super().__init__(f"This draft cannot be published. {problem}")


class NothingToResolve(ConversationError):
    code = "nothing_to_resolve"
    status = 409

    def __init__(self) -> None:
        super().__init__("No call of this run waits to be settled.")


class InvalidAnswer(ConversationError):
    code = "invalid_answer"
    status = 422

    def __init__(self, problem: str) -> None:
        super().__init__(f"The answer does not fit what was asked: {problem}")


class NothingToAnswer(ConversationError):
    code = "nothing_to_answer"
    status = 409

    def __init__(self) -> None:
        super().__init__("This question is not open any more: it was answered, or the run went on without it.")


class PersonDisabled(Exception):
    """The person whose run it is was disabled while it was going on."""


class ModelDisabled(Exception):
    """The run's model was disabled while it was going on."""


class LeaseLost(Exception):
    """Another worker owns the run now, or it was stopped: no call begins any more."""
