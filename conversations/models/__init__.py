"""The record: conversations, messages, runs and everything a run did.

PostgreSQL is the truth. What must never be false is a constraint here, not a check in code. The only way from a
request to a row is `visible_to(user)`.
"""

from conversations.models.asked import RELAY, Asked
from conversations.models.comparison import Comparison, ComparisonAttempt
from conversations.models.files import PICTURES, Artifact, Attachment, StoredFile, load_files
from conversations.models.money import Allotment
from conversations.models.people import Approval, Inspection, Interrupt, Question, Settlement
from conversations.models.record import Call, Doubt, Run, RunEvent
from conversations.models.talk import Conversation, Message
from conversations.models.webhooks import Delivery, Webhook

__all__ = [
    "PICTURES",
    "RELAY",
    "Allotment",
    "Approval",
    "Artifact",
    "Asked",
    "Attachment",
    "Call",
    "Comparison",
    "ComparisonAttempt",
    "Conversation",
    "Delivery",
    "Doubt",
    "Inspection",
    "Interrupt",
    "Message",
    "Question",
    "Run",
    "RunEvent",
    "Settlement",
    "StoredFile",
    "Webhook",
    "load_files",
]
