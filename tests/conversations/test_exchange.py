"""Conversations and runs as files, and conversations brought back."""

import json
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from conversations.exchange import ConversationFile, export_conversation, export_run, import_conversation
from conversations.models import Call, Conversation, Run
from tests.factories import make_conversation, make_message, make_run, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada() -> User:
    return make_user("ada")


def shape(file: dict[str, Any]) -> Any:
    """A file without its ids and times: each message by its number."""
    numbers = {str(message["id"]): number for number, message in enumerate(file["messages"])}
    kept = ("role", "content", "partial", "pinned", "feedback")
    words = [[m[name] for name in kept] + [numbers.get(str(m["parent"]))] for m in file["messages"]]
    return file["title"], numbers.get(str(file["branch"])), words


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200)


@st.composite
def files(draw: Any) -> dict[str, Any]:
    ids = [str(uuid4()) for _ in range(draw(st.integers(0, 12)))]
    messages: list[dict[str, Any]] = []
    for number, name in enumerate(ids):
        role = draw(st.sampled_from(["user", "assistant"]))
        good = draw(st.sampled_from(["", "good", "bad"])) if role == "assistant" else ""
        parent = draw(st.sampled_from([None, *ids[:number]]))
        flags = {"partial": draw(st.booleans()), "pinned": draw(st.booleans()), "feedback": good}
        messages.append({"id": name, "parent": parent, "role": role, "content": draw(TEXT), **flags})
    branch = draw(st.sampled_from([None, *ids]))
    head = {"format": "agentapp.conversation", "version": 1, "title": draw(TEXT), "branch": branch}
    return {**head, "messages": messages}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=files())
def test_what_is_brought_back_says_the_same(client: Client, ada: User, file: dict[str, Any]) -> None:
    client.force_login(ada)
    made = import_conversation(ada, ConversationFile.model_validate(file))
    exported = json.loads(json.dumps(export_conversation(made), default=str))
    assert shape(exported) == shape(file)
    shown = [f"/c/{made.id}/", f"/api/v1/conversations/{made.id}/export?format=markdown"]
    assert {client.get(address).status_code for address in shown} == {200}, "however odd the tree is"
    again = import_conversation(ada, ConversationFile.model_validate(exported))
    assert shape(json.loads(json.dumps(export_conversation(again), default=str))) == shape(file)


def test_an_import_belongs_to_the_importer_and_makes_no_run(client: Client, ada: User) -> None:
    talk = make_conversation(ada, "Figures")
    run = make_run(make_message(talk, "How many?"), "completed", answer="Five.")
    make_message(talk, "Five.", role="assistant", run=run)
    client.force_login(ada)
    answer = client.get(f"/api/v1/conversations/{talk.id}/export")
    file = answer.json()
    assert file["runs"][0]["id"] == str(run.id) and "attachment" in answer["Content-Disposition"]
    eve = make_user("eve")
    client.force_login(eve)
    made = client.post("/api/v1/conversations/import", json.dumps(file), content_type="application/json")
    assert made.status_code == 201
    mine = Conversation.objects.get(id=made.json()["id"])
    assert mine.user == eve and mine.id != talk.id
    assert not Run.objects.filter(conversation=mine).exists()
    messages: list[Any] = list(mine.messages.values_list("content", "run", "role"))
    assert messages == [("How many?", None, "user"), ("Five.", None, "assistant")]
    page = client.get(f"/c/{mine.id}/")
    assert page.status_code == 200 and "Five." in page.content.decode()


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": "other"},
        {"version": 2},
        {"owner": 1},
        {"branch": str(uuid4())},
        {"messages": [{"id": str(uuid4()), "role": "system", "content": "x"}]},
        {"messages": [{"id": str(uuid4()), "parent": str(uuid4()), "role": "user", "content": "x"}]},
        {"messages": [{"id": str(uuid4()), "role": "user", "content": "x" * 1_000_001}]},
        {"messages": [{"id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "role": "user", "content": "x"}] * 2},
    ],
    ids=["format", "version", "owner", "branch", "role", "parent", "length", "twice"],
)
def test_a_file_that_is_none_of_ours_is_refused(client: Client, ada: User, wrong: dict[str, Any]) -> None:
    client.force_login(ada)
    file = {"format": "agentapp.conversation", "version": 1, "messages": [], **wrong}
    answer = client.post("/api/v1/conversations/import", json.dumps(file), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert not Conversation.objects.exists()


def test_a_file_that_is_too_large_is_refused(client: Client, ada: User) -> None:
    client.force_login(ada)
    answer = client.post("/api/v1/conversations/import", "x" * 3_000_000, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_what_was_taken_back_is_in_no_file(ada: User) -> None:
    talk = make_conversation(ada)
    make_message(talk, "Secret", recalled=True, parent_id=None)
    Conversation.objects.filter(id=talk.id).update(leaf=None)
    make_message(talk, "Hello")
    assert "Secret" not in json.dumps(export_conversation(talk), default=str)


def test_a_run_is_exported_with_its_trace(client: Client, ada: User) -> None:
    run = make_run(make_message(make_conversation(ada), "How `many`?"), "completed", answer="Five.")
    now = run.created_at
    made = {"kind": "llm", "effect_class": "read", "state": "succeeded", "epoch": 1, "started_at": now, "ended_at": now}
    Call.objects.create(run=run, key="react/1/llm", request={"text": "``` fence"}, result={"number": 10**30}, **made)
    file = export_run(run)
    assert (file["question"], file["run"]["answer"], len(file["calls"])) == ("How `many`?", "Five.", 1)
    client.force_login(ada)
    whole = client.get(f"/api/v1/runs/{run.id}/export").json()
    assert whole["calls"][0]["result"] == {"number": 10**30}, "models write integers of any size"
    answer = client.get(f"/api/v1/runs/{run.id}/export", {"format": "markdown"})
    assert answer["Content-Type"].startswith("text/markdown")
    text = answer.content.decode()
    assert "How `many`?" in text and "````json" in text and text.rstrip().endswith("Five.")
    client.force_login(make_user("eve"))
    assert client.get(f"/api/v1/runs/{run.id}/export").status_code == 404


def test_the_visible_branch_is_exported_to_be_read(client: Client, ada: User) -> None:
    talk = make_conversation(ada, "Figures")
    first = make_message(talk, "How many?")
    make_message(talk, "Four.", role="assistant")
    make_message(talk, "Five.", role="assistant", parent_id=first.id)
    client.force_login(ada)
    answer = client.get(f"/api/v1/conversations/{talk.id}/export", {"format": "markdown"})
    assert answer.content.decode() == "# Figures\n\n## You\n\nHow many?\n\n## Assistant\n\nFive.\n"
    assert 'filename="Figures.md"' in answer["Content-Disposition"]
