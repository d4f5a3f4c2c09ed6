"""Conversations and runs as files: to keep, to read elsewhere, and conversations to bring back.

An export is for reading; what is brought back are the words of a conversation, with its files if it came as a ZIP
(`archive.py`), and nothing else. Runs, traces, costs, ids and times in a file are somebody's claim, so an import makes
none of them.
"""

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal, TypeVar
from uuid import UUID, uuid4

from django.db import transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from pydantic import Field, StrictBool, model_validator

from accounts.examples import ANSWER, QUESTION, example
from accounts.models import User
from conversations.cleaning import clean, to_json
from conversations.lifecycle import after_commit
from conversations.models import Attachment, Conversation, Message, Run
from conversations.schemas import StrictSchema
from conversations.schemas_runs import CallOut, EventOut, RunOut
from conversations.telling import tell_conversation
from tools_admin.services import agent_for

R = TypeVar("R", bound=HttpResponseBase)

MOST_MESSAGES = 5_000
MOST_FILES = 200  # each picture among them is drawn anew while somebody waits
MOST_CHARS = 1_000_000  # of one message: an answer may be longer than what people may send
_IGNORED = "For reading: an import makes none of it."


class ExportedFile(StrictSchema):
    """A file of a message. Its bytes are an entry of the ZIP; JSON alone has none, and brings none back."""

    name: str = Field(min_length=1, max_length=300, description="Its entry in the ZIP.")
    filename: str = Field(max_length=200, description="As it was uploaded.")
    size: int = Field(0, ge=0, description=_IGNORED)
    sha256: str = Field("", max_length=64, description="Of its bytes, in hexadecimal digits.")


class ExportedMessage(StrictSchema):
    """A message of a conversation's tree; its parent stands before it."""

    id: UUID = Field(description="Names it within the file.")
    parent: UUID | None = Field(None, description="The message before it; null at a beginning.")
    role: Literal["user", "assistant"] = Field(description="Who says it.")
    content: str = Field(max_length=MOST_CHARS, description="Markdown.")
    partial: StrictBool = Field(False, description="The answer was stopped or broke off.")
    pinned: StrictBool = Field(False, description="It stays in the agent's context.")
    feedback: Literal["", "good", "bad"] = Field("", description="What the reader thought of an answer.")
    created_at: str = Field("", max_length=40, description=_IGNORED)
    run: UUID | None = Field(None, description=_IGNORED)
    files: list[ExportedFile] = Field([], max_length=MOST_FILES, description="What came with it.")


class ConversationFile(StrictSchema):
    """A conversation with all its branches, as `GET …/export` gives it."""

    model_config = example(
        format="agentapp.conversation",
        version=1,
        title="What is 12 * 12?",
        branch=ANSWER,
        messages=[
            {"id": QUESTION, "role": "user", "content": "What is 12 * 12?"},
            {"id": ANSWER, "parent": QUESTION, "role": "assistant", "content": "The result is 144."},
        ],
    )

    format: Literal["agentapp.conversation"] = Field(description="What the file is.")
    version: Literal[1] = Field(description="Of the format.")
    title: str = Field("", max_length=200, description="What it is called.")
    branch: UUID | None = Field(None, description="The message that ends the visible branch.")
    messages: list[ExportedMessage] = Field(max_length=MOST_MESSAGES, description="Each behind its parent.")
    exported_at: str = Field("", max_length=40, description=_IGNORED)
    runs: list[dict[str, Any]] = Field([], max_length=MOST_MESSAGES, description=_IGNORED)

    @model_validator(mode="after")
    def is_a_tree(self) -> "ConversationFile":
        known: set[UUID] = set()
        for message in self.messages:
            if message.id in known:
                raise ValueError(f"the message {message.id} is there twice")
            if message.parent and message.parent not in known:
                raise ValueError(f"the parent of the message {message.id} does not stand before it")
            known.add(message.id)
        if self.branch and self.branch not in known:
            raise ValueError("the branch ends with a message that is not there")
        if len({file.name for message in self.messages for file in message.files}) > MOST_FILES:
            raise ValueError(f"it has more than {MOST_FILES} files; its JSON can be brought back without them")
        return self


def export_conversation(conversation: Conversation) -> dict[str, Any]:
    """As `ConversationFile`, with the runs. Three queries."""
    messages = list(conversation.messages.filter(recalled=False).order_by("created_at", "id"))
    return {
        "format": "agentapp.conversation",
        "version": 1,
        "title": conversation.title,
        "branch": conversation.leaf_id,
        "exported_at": timezone.now().isoformat(),
        "messages": [_exported(message) for message in _parents_first(messages)],
        "runs": [_dumped(RunOut, run) for run in conversation.runs.order_by("created_at")],
    }


def export_run(run: Run) -> dict[str, Any]:
    """A run with its question, calls and events. Four queries."""
    return {
        "format": "agentapp.run",
        "version": 1,
        "title": run.message.content[:200],
        "exported_at": timezone.now().isoformat(),
        "question": run.message.content,
        "run": _dumped(RunOut, run),
        "calls": [_dumped(CallOut, call) for call in run.calls.order_by("id")],
        "events": [_dumped(EventOut, event) for event in run.events.order_by("seq")],
    }


@transaction.atomic(durable=True)
def import_conversation(
    user: User, file: ConversationFile, attachments: Mapping[UUID, list[UUID]] | None = None
) -> Conversation:
    """A conversation of the importer with the file's words: new ids, times of now, no runs. `attachments` are unsent
    ones of the importer, by the file's messages."""
    given = attachments or {}
    conversation = Conversation.objects.create(user=user, agent=agent_for(user), title=clean(file.title))
    ids = {message.id: uuid4() for message in file.messages}
    now = timezone.now()
    made = [
        Message(
            id=ids[message.id],
            conversation=conversation,
            parent_id=ids[message.parent] if message.parent else None,
            role=message.role,
            content=clean(message.content),
            partial=message.partial,
            pinned=message.pinned,
            feedback=message.feedback if message.role == "assistant" else "",
            attachments=given.get(message.id, []),
        )
        for message in file.messages
    ]
    Message.objects.bulk_create(made)
    for number, message in enumerate(made):  # siblings are told apart by their times
        message.created_at = now + timedelta(microseconds=number - len(made))
    Message.objects.bulk_update(made, ["created_at"], batch_size=500)
    taken = Attachment.objects.visible_to(user).unsent().filter(id__in=[id for ids in given.values() for id in ids])
    taken.update(conversation=conversation)
    if file.branch:
        conversation.leaf_id = ids[file.branch]
        conversation.save(update_fields=["leaf"])
    after_commit(tell_conversation, conversation, False)
    return conversation


def download(exported: dict[str, Any], format: Literal["json", "markdown"]) -> HttpResponse:
    """The export as a file to save."""
    if format == "json":
        return as_file(
            HttpResponse(to_json(exported), content_type="application/json; charset=utf-8"), exported, "json"
        )
    return as_file(HttpResponse(_markdown(exported), content_type="text/markdown; charset=utf-8"), exported, "md")


def as_file(response: R, exported: dict[str, Any], ending: str) -> R:
    name = re.sub(r"[^A-Za-z0-9]+", "-", exported["title"])[:60].strip("-") or "export"
    response["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
    return response


def _exported(message: Message) -> dict[str, Any]:
    return {
        "id": message.id,
        "parent": message.parent_id,
        "role": message.role,
        "content": message.content,
        "partial": message.partial,
        "pinned": message.pinned,
        "feedback": message.feedback,
        "created_at": message.created_at.isoformat(),
        "run": message.run_id,
    }


def _parents_first(messages: list[Message]) -> list[Message]:
    """By time, but none before its parent: what was taken back leaves messages below older ones."""
    there = {message.id for message in messages}
    ordered: dict[UUID, Message] = {}
    held: dict[UUID, list[Message]] = {}
    for message in messages:
        if message.parent_id in there and message.parent_id not in ordered:
            held.setdefault(message.parent_id, []).append(message)
            continue
        following = [message]
        while following:
            first = following.pop(0)
            ordered[first.id] = first
            following += held.pop(first.id, [])
    return list(ordered.values())


def _dumped(schema: Any, row: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = schema.model_validate(row).model_dump()
    return dumped


def _markdown(exported: dict[str, Any]) -> str:
    """The visible branch, or the question, calls and answer of a run, to be read."""
    parts = [f"# {exported['title'].splitlines()[0] if exported['title'] else _('Conversation')}"]
    if exported["format"] == "agentapp.run":
        parts += [f"## {_('Question')}", exported["question"]]
        for call in exported["calls"]:
            parts += [f"## {call['kind']} `{call['key']}`: {call['state']}"]
            parts += [_block(call["request"]), _block(call["result"])]
        parts += [f"## {_('Answer')}", exported["run"]["answer"]]
    for message in _branch(exported):
        parts += [f"## {_('You') if message['role'] == 'user' else _('Assistant')}", message["content"]]
    return "\n\n".join(parts) + "\n"


def _branch(exported: dict[str, Any]) -> list[dict[str, Any]]:
    by_id = {message["id"]: message for message in exported.get("messages", [])}
    found, end = [], exported.get("branch")
    while end:
        found.append(by_id[end])
        end = by_id[end]["parent"]
    return found[::-1]


def _block(value: Any) -> str:
    """JSON between fences that it cannot close."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}json\n{text}\n{fence}"
