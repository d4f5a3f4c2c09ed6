"""Every POST of the API, sent twice with one `Idempotency-Key`: done once, answered twice."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import IdempotentAnswer, User
from accounts.services import create_api_key
from conversations.models import Approval, Attachment, Call, Interrupt, Question, Run, Webhook
from tests.factories import make_conversation, make_message, make_run, make_user
from tests.rows import make_row
from tests.tools_admin.knowledge.collection import make_collection
from tools_admin.models import KnowledgeDocument

pytestmark = pytest.mark.django_db(transaction=True)
DOCUMENT = json.loads((Path(__file__).resolve().parent.parent / "docs" / "openapi.json").read_text())
POSTS = sorted(path.removeprefix("/api/v1") for path, calls in DOCUMENT["paths"].items() if "post" in calls)
HOOK = {"url": "https://hooks.example/", "events": ["run.finished"]}


@pytest.fixture
def ada() -> User:
    return make_user("ada", is_superuser=True)


@pytest.fixture
def client(ada: User) -> Client:
    return Client(headers={"Authorization": f"Bearer {create_api_key(ada, 'x')[1]}"})


def text_file(content: bytes = b"Hello") -> SimpleUploadedFile:
    return SimpleUploadedFile("hello.txt", content)


def _run(user: User, status: str = "completed", **fields: Any) -> Run:
    return make_run(make_message(make_conversation(user)), status, **fields)


def _returned(user: User) -> str:
    run = _run(user)
    Interrupt.objects.create(run=run, message=make_message(run.conversation), state="returned")
    return f"/conversations/{run.conversation_id}/collect"


def _unread(user: User) -> str:
    run = _run(user, "running")
    return f"/messages/{Interrupt.objects.create(run=run, message=make_message(run.conversation)).message_id}/recall"


def _answered(user: User) -> str:
    run = _run(user)
    return f"/messages/{make_message(run.conversation, 'Five.', 'assistant', run=run).id}/regenerate"


def _doubt(user: User) -> tuple[str, Any]:
    run = _run(user, "waiting", reason="reconciliation")
    make_row(Call, run=run, key="react/1/tool/0", kind="tool", state="unknown", request={"name": "send"})
    return f"/runs/{run.id}/resolve", {"call": "react/1/tool/0", "outcome": "done"}


def _question(user: User) -> tuple[str, Any]:
    run = _run(user, "waiting", reason="input")
    question = make_row(Question, run=run, fields={"type": "object"}, expires_at=timezone.now() + timedelta(days=1))
    return f"/runs/{run.id}/answer", {"request": str(question.id), "action": "accept", "value": {}}


def _approval(user: User) -> tuple[str, Any]:
    row = make_row(Approval, run=_run(user, "waiting", reason="approval"), decided_by=None)
    return f"/approvals/{row.id}", {"decision": "reject"}


def _hook(user: User) -> Webhook:
    return Webhook.objects.create(user=user, url=HOOK["url"], events=HOOK["events"])


def _collection(user: User) -> tuple[str, Any]:
    collection = make_collection(uploads=True)
    return f"/collections/{collection.pk}/documents", text_file


_FILE = {"format": "agentapp.conversation", "version": 1, "messages": []}
# What to call, and with what.
CALLS: dict[str, Callable[[User], tuple[str, Any]]] = {
    "/approvals/{approval_id}": _approval,
    "/attachments": lambda user: ("/attachments", text_file),
    "/collections/{collection_id}/documents": _collection,
    "/conversations": lambda user: ("/conversations", {"title": "Once"}),
    "/conversations/import": lambda user: ("/conversations/import", _FILE),
    "/conversations/import/file": lambda user: (
        "/conversations/import/file",
        lambda: SimpleUploadedFile("x.json", json.dumps(_FILE).encode()),
    ),
    "/conversations/{conversation_id}/collect": lambda user: (_returned(user), {}),
    "/conversations/{conversation_id}/messages": lambda user: (
        f"/conversations/{make_conversation(user).id}/messages",
        {"content": "Hello"},
    ),
    "/deliveries/{delivery_id}/replay": lambda user: (
        f"/deliveries/{_hook(user).deliveries.create(event='ping', payload={}).id}/replay",
        {},
    ),
    "/messages/{message_id}/edit": lambda user: (f"/messages/{_run(user).message_id}/edit", {"content": "Other"}),
    "/messages/{message_id}/recall": lambda user: (_unread(user), {}),
    "/messages/{message_id}/regenerate": lambda user: (_answered(user), {}),
    "/runs": lambda user: ("/runs", {"input": "Hello"}),
    "/runs/{run_id}/answer": _question,
    "/runs/{run_id}/cancel": lambda user: (f"/runs/{_run(user, 'waiting').id}/cancel", {}),
    "/runs/{run_id}/resolve": _doubt,
    "/runs/{run_id}/retry": lambda user: (f"/runs/{_run(user, 'failed').id}/retry", {}),
    "/webhooks": lambda user: ("/webhooks", HOOK),
    "/webhooks/{webhook_id}/ping": lambda user: (f"/webhooks/{_hook(user).id}/ping", {}),
}


def post(client: Client, path: str, body: Any, key: str) -> Any:
    headers = {"Idempotency-Key": key}
    if callable(body):
        return client.post(f"/api/v1{path}", {"file": body()}, headers=headers)
    return client.post(f"/api/v1{path}", json.dumps(body), content_type="application/json", headers=headers)


@pytest.mark.parametrize("path", POSTS)
def test_sent_twice_it_is_done_once(client: Client, ada: User, path: str) -> None:
    address, body = CALLS[path](ada)
    key = str(uuid4())
    first = post(client, address, body, key)
    assert first.status_code < 300, first.content
    second = post(client, address, body, key)
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second.headers.get("Idempotent-Replayed") == "true"
    assert "Idempotency-Key" in {p["name"] for p in DOCUMENT["paths"][f"/api/v1{path}"]["post"]["parameters"]}


def test_no_other_way_of_writing_does_something_twice() -> None:
    """To change and to delete are the same done once and twice; anything else would need a key."""
    methods = {method for calls in DOCUMENT["paths"].values() for method in calls}
    assert methods == {"get", "post", "patch", "delete"}


def test_of_uploads_the_files_are_compared(client: Client) -> None:
    assert post(client, "/attachments", text_file, "k").status_code == 201
    assert post(client, "/attachments", text_file, "k").status_code == 201, "each request has a boundary of its own"
    assert Attachment.objects.count() == 1
    assert Attachment.objects.get().path.read_bytes() == b"Hello"
    other = post(client, "/attachments", lambda: text_file(b"World"), "k")
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    named = post(client, "/attachments", lambda: SimpleUploadedFile("other.txt", b"Hello"), "k")
    assert named.json()["code"] == "idempotency_key_reused"
    assert not KnowledgeDocument.objects.exists()


def test_a_secret_in_a_kept_answer_is_encrypted(client: Client) -> None:
    secret = post(client, "/webhooks", HOOK, "k").json()["secret"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT answer FROM accounts_idempotentanswer")
        assert secret not in str(cursor.fetchall())
    assert IdempotentAnswer.objects.get().answer.get_secret_value()
    assert post(client, "/webhooks", HOOK, "k").json()["secret"] == secret
    assert Webhook.objects.count() == 1
