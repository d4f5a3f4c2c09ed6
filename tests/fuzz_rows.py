"""Something of everything the API gives out, of one person: `rows_of` is called inside the running product.

Several of each, because a fuzzer deletes, decides and answers.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import User
from conversations.files import save_file
from conversations.models import (
    Approval,
    Artifact,
    Attachment,
    Call,
    Conversation,
    Delivery,
    Message,
    Question,
    Run,
    RunEvent,
    Webhook,
)
from conversations.open_calls import digest
from tests.factories import make_conversation, make_message, make_run
from tests.tools_admin.knowledge.collection import make_collection, stored
from tools_admin.models import Agent, Connector

EACH = 6
KEY = "react/1/tool/0"
ASKED = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string", "minLength": 1}}}


def rows_of(user_id: int) -> dict[str, list[Any]]:
    """Values for the dictionaries of `schemathesis.toml`, by their names."""
    user = User.objects.get(pk=user_id)
    made: dict[str, list[Any]] = {}

    def note(**ids: Any) -> None:
        for name, value in ids.items():
            made.setdefault(name, []).append(value if isinstance(value, int) else str(value))

    for number in range(EACH):
        for status in ("completed", "failed", "cancelled"):
            run = _ended(user, status, number)
            note(run=run.id, ended_run=run.id, conversation=run.conversation_id, message=run.message_id)
            note(artifact=_file(Artifact(run=run, key=KEY)).id, attachment=_attachment(run).id)
        for wait in (_running, _needs_approval, _needs_input, _needs_settling):
            run = wait(user, note)
            note(run=run.id, conversation=run.conversation_id, message=run.message_id)
        note(spare_conversation=make_conversation(user).id, unsent=_file(Attachment(user=user)).id)
        note(conversation=_returned(user, number).id)
        hook, spare = (_webhook(user) for _ in range(2))
        note(webhook=hook.id, spare_webhook=spare.id, delivery=_delivery(hook).id)
    note(**_knowledge(user), agent=Agent.objects.visible_to(user).default_first()[0].pk)
    for _ in range(EACH):
        note(spare_document=_document(user).id)
    return made


def _ended(user: User, status: str, number: int) -> Run:
    """With an answer, its record and its events."""
    question = make_message(make_conversation(user, f"Figures {number}"), "What is 12 * 12?")
    run = make_run(question, status, reason="final_answer", answer="144", iterations=1, next_seq=3)
    make_message(run.conversation, "144", "assistant", run=run)
    _call(run, Call.State.SUCCEEDED, ended_at=timezone.now(), result={"content": "144", "is_error": False})
    done = {"status": status, "reason": run.reason, "answer": run.answer, "message_id": str(question.id)}
    for seq, (channel, data) in enumerate([("run", {"status": "running"}), ("done", done)], start=1):
        RunEvent.objects.create(run=run, seq=seq, channel=channel, data=data, key=str(seq), at=timezone.now())
    return run


def _running(user: User, note: Callable[..., None]) -> Run:
    """By a worker that is elsewhere; with a message that it has not read."""
    until = timezone.now() + timedelta(days=1)
    run = make_run(make_message(make_conversation(user)), "running", lease_owner="elsewhere", lease_expires_at=until)
    meanwhile = make_message(run.conversation, "And 13 * 13?", run=run, injected=True)
    run.interrupts.create(message=meanwhile)
    note(message=meanwhile.id, unread=meanwhile.id)
    return run


def _returned(user: User, number: int) -> Conversation:
    """With a message that nobody had read when its run was stopped."""
    run = make_run(make_message(make_conversation(user, f"Stopped {number}")), "cancelled", reason="user")
    run.interrupts.create(message=make_message(run.conversation, run=run, injected=True), state="returned")
    return run.conversation


def _needs_approval(user: User, note: Callable[..., None]) -> Run:
    run = make_run(make_message(make_conversation(user)), "waiting", reason="approval")
    arguments = {"expression": "12 * 12"}
    bound = {"tool_name": "calculator", "digest": digest({"name": "calculator", "arguments": arguments})}
    until = timezone.now() + timedelta(days=1)
    note(approval=Approval.objects.create(run=run, key=KEY, arguments=arguments, expires_at=until, **bound).id)
    return run


def _needs_input(user: User, note: Callable[..., None]) -> Run:
    run = make_run(make_message(make_conversation(user)), "waiting", reason="input")
    until = timezone.now() + timedelta(days=1)
    asked = Question.objects.create(run=run, key=KEY, text="Which city?", fields=ASKED, expires_at=until)
    note(question=asked.id, asking_run=run.id)
    return run


def _needs_settling(user: User, note: Callable[..., None]) -> Run:
    run = make_run(make_message(make_conversation(user)), "waiting", reason="reconciliation")
    _call(run, Call.State.UNKNOWN)
    note(doubtful_run=run.id)
    return run


def _call(run: Run, state: str, **fields: Any) -> Call:
    request = {"name": "calculator", "arguments": {"expression": "12 * 12"}}
    common = {"kind": "tool", "effect_class": "pure", "epoch": 1, "started_at": timezone.now()}
    return Call.objects.create(run=run, key=KEY, request=request, state=state, **common, **fields)


def _attachment(run: Run) -> Attachment:
    """One that was sent."""
    sent = _file(Attachment(user=run.user, conversation=run.conversation))
    Message.objects.filter(pk=run.message_id).update(attachments=[sent.id])
    return sent


def _file(row: Any) -> Any:
    row.filename, row.content_type = "figures.txt", "text/plain"
    save_file(row, b"12 and 144")
    return row


def _webhook(user: User) -> Webhook:
    return Webhook.objects.create(user=user, url="http://127.0.0.1:9/", events=["run.finished"], secret="whsec_eA==")


def _delivery(hook: Webhook) -> Delivery:
    return Delivery.objects.create(webhook=hook, event="ping", payload={"type": "ping"}, state="delivered")


def _knowledge(user: User) -> dict[str, Any]:
    document = _document(user)
    return {
        "collection": document.collection_id,
        "document": document.id,
        "passage": document.passages.order_by("number")[0].pk,
    }


def _document(user: User) -> Any:
    found = Connector.objects.filter(kind="knowledge").first()
    return stored(found or make_collection("Rules of the house", uploads=True), "# Rules\n\nBe kind.", user)
