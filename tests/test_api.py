"""What holds for the API as a whole: its document, its errors, creation once, limits, names of requests."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.http import HttpRequest
from django.test import Client
from django.utils import timezone

from accounts.models import Budget, IdempotentAnswer, User
from accounts.services import create_api_key, forget_idempotent_answers
from agentapp.errors import all_codes
from agentapp.json_body import AnswerRenderer
from conversations.models import Conversation, Message, Run, Webhook
from tests.factories import make_conversation, make_message, make_run, make_user
from tools_admin.models import LanguageModel, Provider

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def ada(db: None) -> User:
    return make_user("ada")


@pytest.fixture
def client(ada: User) -> Client:
    """A program of ada's."""
    return Client(headers={"Authorization": f"Bearer {create_api_key(ada, 'x')[1]}"})


def post(client: Client, path: str, body: Any, **headers: str) -> Any:
    return client.post(f"/api/v1{path}", json.dumps(body), content_type="application/json", headers=headers)


def patch(client: Client, path: str, body: Any, **headers: str) -> Any:
    return client.patch(f"/api/v1{path}", json.dumps(body), content_type="application/json", headers=headers)


@pytest.mark.parametrize("levels", [101, 300, 700, 900, 100_000])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/v1/conversations/import", "/api/v1/approvals/{}"])
@pytest.mark.django_db(transaction=True)
def test_json_that_is_nested_too_deeply_is_refused(client: Client, path: str, levels: int) -> None:
    body = '{"runs": ' + "[" * levels + "]" * levels + "}"
    answer = client.post(path.format(uuid4()), body, content_type="application/json")
    assert answer.status_code == 400
    told = answer.json()
    words = told.get("detail") or told["error"]["message"]
    assert "nested too deeply" in words or levels > 500, "what no reader of JSON takes gets other words"


def test_every_code_is_explained_and_no_other() -> None:
    section = (ROOT / "docs" / "api.md").read_text().split("## Errors")[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == all_codes()


@pytest.mark.parametrize("api", ["/api/v1", "/v1"])
def test_the_page_of_the_api_needs_nothing_from_elsewhere(client: Client, api: str) -> None:
    page = client.get(f"{api}/docs")
    html = page.content.decode()
    assert f'data-document="{api}/openapi.json"' in html
    assert page.status_code == 200 and "<style" not in html and not re.search(r"<script(?![^>]*src=)", html)
    assert all(address.startswith("/") for address in re.findall(r'(?:src|href)="([^"]+)"', html))
    assert "unsafe" not in page["Content-Security-Policy"]


def test_the_models_are_listed(client: Client) -> None:
    provider = Provider.objects.create(name="p", base_url="http://models.example/v1")
    model = LanguageModel.objects.create(provider=provider, name="gpt")
    shown = client.get("/api/v1/models").json()["items"]
    assert (model.name, str(model)) in [(row["name"], row["label"]) for row in shown]


@pytest.mark.parametrize(("path", "error"), [("/api/v1/runs/null", "code"), ("/v1/nothing", "error")])
def test_an_address_that_fits_nothing_is_answered_in_the_words_of_its_api(
    client: Client, path: str, error: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == 404 and error in answer.json()


def test_types_are_those_of_the_document(client: Client, ada: User) -> None:
    assert client.get("/api/v1/runs?since=0.5").status_code == client.get("/api/v1/usage?until=0").status_code == 422
    path = f"/conversations/{make_conversation(ada).id}"
    for body in ([None], {"pinned": 0}, {"agent": "1"}):
        assert patch(client, path, body).status_code == 422, body


def test_each_answer_names_its_request(client: Client) -> None:
    assert re.fullmatch(r"[0-9a-f]{32}", client.get("/api/v1/me")["X-Request-ID"])
    assert client.get("/api/v1/me", headers={"X-Request-ID": "job-7"})["X-Request-ID"] == "job-7"
    assert client.get("/api/v1/me", headers={"X-Request-ID": "a b\tc"})["X-Request-ID"] != "a b\tc"


def test_answers_say_what_is_left_of_the_limit(client: Client, settings: Any) -> None:
    settings.RATE_REQUESTS = "2/hour"
    answers = [client.get("/api/v1/me") for _ in range(3)]
    assert [a.status_code for a in answers] == [200, 200, 429]
    assert [a["RateLimit-Remaining"] for a in answers] == ["1", "0", "0"]
    assert {(a["RateLimit-Limit"], a["RateLimit-Policy"]) for a in answers} == {("2", "2;w=3600")}


@pytest.mark.django_db(transaction=True)
def test_the_same_key_and_body_create_once(client: Client) -> None:
    first, second = (post(client, "/conversations", {"title": "Once"}, **{"Idempotency-Key": "k1"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json() and second["Idempotent-Replayed"] == "true"
    assert Conversation.objects.count() == 1
    other = post(client, "/conversations", {"title": "Other"}, **{"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert post(client, "/conversations", {"title": "Once"}, **{"Idempotency-Key": "a b"}).status_code == 400


@pytest.mark.django_db(transaction=True)
def test_a_key_is_of_one_person_for_a_day(client: Client) -> None:
    post(client, "/conversations", {"title": "Mine"}, **{"Idempotency-Key": "k1"})
    eve = Client(headers={"Authorization": f"Bearer {create_api_key(make_user('eve'), 'x')[1]}"})
    assert post(eve, "/conversations", {"title": "Hers"}, **{"Idempotency-Key": "k1"}).json()["title"] == "Hers"
    IdempotentAnswer.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert post(client, "/conversations", {"title": "New"}, **{"Idempotency-Key": "k1"}).json()["title"] == "New"
    forget_idempotent_answers()
    assert IdempotentAnswer.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_fails_gives_its_key_back(client: Client) -> None:
    assert post(client, "/runs", {"input": " "}, **{"Idempotency-Key": "k1"}).status_code == 400
    started = post(client, "/runs", {"input": "Hello"}, **{"Idempotency-Key": "k1"})
    again = post(client, "/runs", {"input": "Hello"}, **{"Idempotency-Key": "k1"})
    assert started.status_code == again.status_code == 202 and started.json() == again.json()
    assert Run.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_same_request_at_once_is_done_once(client: Client) -> None:
    def send(_: int) -> int:
        try:
            return int(post(client, "/runs", {"input": "Hello"}, **{"Idempotency-Key": "k1"}).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(send, range(4))) <= {202, 409}
    assert Run.objects.count() == Message.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_process_that_died_in_the_middle_leaves_one_message(client: Client) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = post(client, "/runs", {"input": "Hello"}, **headers).json()
    IdempotentAnswer.objects.update(status=None)  # as if it had died before the answer was kept
    assert post(client, "/runs", {"input": "Hello"}, **headers).json()["code"] == "idempotency_in_progress"
    IdempotentAnswer.objects.update(expires_at=timezone.now())
    assert post(client, "/runs", {"input": "Hello"}, **headers).json()["id"] == first["id"]
    IdempotentAnswer.objects.update(expires_at=timezone.now())  # days later the key comes with something else
    assert post(client, "/runs", {"input": "Goodbye"}, **headers).json()["id"] != first["id"]


def _editable(kind: str, ada: User) -> tuple[str, Any, Any]:
    """An address, and two changes that collide."""
    message = make_message(make_conversation(ada), "144", "assistant")
    if kind == "message":
        return f"/messages/{message.id}", {"feedback": "good"}, {"feedback": "bad"}
    if kind == "webhook":
        hook = Webhook.objects.create(user=ada, url="https://hooks.example/", events=["run.finished"])
        return f"/webhooks/{hook.id}", {"events": ["budget.near"]}, {"enabled": False}
    return f"/conversations/{message.conversation_id}", {"title": "First"}, {"title": "Second"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["conversation", "message", "webhook"])
def test_of_two_writers_the_second_is_told(client: Client, ada: User, kind: str) -> None:
    path, first, second = _editable(kind, ada)
    etag = client.get(f"/api/v1{path}")["ETag"]
    changed = patch(client, path, first, **{"If-Match": etag})
    late = patch(client, path, second, **{"If-Match": etag})
    assert (changed.status_code, late.status_code, late.json()["code"]) == (200, 412, "changed_meanwhile")
    assert client.get(f"/api/v1{path}").json() == changed.json(), "what came too late has changed nothing"
    assert client.get(f"/api/v1{path}")["ETag"] == changed["ETag"]
    # Of several versions one fits; on the way through a proxy it has become a weak one.
    assert patch(client, path, second, **{"If-Match": f'"x", W/{changed["ETag"]}'}).status_code == 200
    assert patch(client, path, first, **{"If-Match": "*"}).status_code == 200
    assert patch(client, path, second).status_code == 200, "who does not ask is not held up"


@pytest.mark.django_db(transaction=True)
def test_of_writers_at_once_with_the_same_version_one_wins(client: Client, ada: User) -> None:
    path = _editable("webhook", ada)[0]
    etag = client.get(f"/api/v1{path}")["ETag"]

    def write(number: int) -> int:
        try:
            body = {"url": f"https://hooks.example/{number}"}
            return int(patch(client, path, body, **{"If-Match": etag}).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(write, range(4))) == [200, 412, 412, 412]


def test_runs_are_listed_page_by_page(client: Client, ada: User) -> None:
    runs = [make_run(make_message(make_conversation(ada)), status) for status in ["completed", "failed", "completed"]]
    other = make_run(make_message(make_conversation(make_user("eve"))), "completed")
    first = client.get("/api/v1/runs", {"limit": 2}).json()
    second = client.get("/api/v1/runs", {"limit": 2, "cursor": first["next"]}).json()
    assert [row["id"] for row in first["items"] + second["items"]] == [str(run.id) for run in reversed(runs)]
    assert second["next"] is None
    assert [row["id"] for row in client.get("/api/v1/runs", {"status": "failed"}).json()["items"]] == [str(runs[1].id)]
    assert client.get("/api/v1/runs", {"user": other.user_id}).json()["items"] == []
    assert client.get("/api/v1/runs", {"since": timezone.now().isoformat()}).json()["items"] == []


def test_somebody_elses_runs_need_right_and_scope_and_are_recorded(ada: User) -> None:
    run = make_run(make_message(make_conversation(ada)), "completed")
    boss = User.objects.create_superuser("boss", "", "x")

    def seen(*scopes: str) -> int:
        key = create_api_key(boss, "x", scopes=scopes)[1]
        answer = Client(headers={"Authorization": f"Bearer {key}"}).get("/api/v1/runs", {"user": ada.pk})
        return len(answer.json()["items"])

    assert (seen("runs:read"), run.inspections.count()) == (0, 0)
    assert (seen("runs:read", "admin:read"), run.inspections.count()) == (1, 1)


@pytest.mark.parametrize(("path", "queries"), [("/me", 2), ("/conversations/{}/messages?limit=50", 2)])
def test_the_number_of_queries_is_fixed(
    client: Client, ada: User, django_assert_num_queries: Any, path: str, queries: int
) -> None:
    talk = make_conversation(ada)
    for number in range(60):
        make_message(talk, f"Message {number}")
    address = f"/api/v1{path.format(talk.id)}"
    client.get(address)  # the first one writes when the key was used
    with django_assert_num_queries(queries):
        assert client.get(address).status_code == 200


def test_me_names_groups_and_all_budgets_that_pay(ada: User) -> None:
    crew, other = Group.objects.create(name="Crew"), Group.objects.create(name="Alone")
    ada.groups.add(crew, other)
    key, text = create_api_key(ada, "robot")
    foreign, _ = create_api_key(ada, "another robot")
    for owner in ({"user": ada}, {"group": crew}, {"api_key": key}, {"api_key": foreign}):
        Budget.objects.create(limit=100, used=90, **owner)
    me = Client(headers={"Authorization": f"Bearer {text}"}).get("/api/v1/me").json()
    assert me["groups"] == ["Alone", "Crew"]
    assert [(b["of"], b["owner"]) for b in me["budgets"]] == [
        ("user", "ada"),
        ("group", "Crew"),
        ("api_key", str(key)),
    ]
    assert {(b["used"], b["left"], b["low"]) for b in me["budgets"]} == {(90, 10, True)}


def test_answers_hold_any_number_and_any_text() -> None:
    data = {"n": 10**30, "text": "ü\ud800", "at": datetime(2026, 1, 31, 12, tzinfo=UTC), "id": UUID(int=1)}
    written = json.loads(AnswerRenderer().render(HttpRequest(), data, response_status=200))
    assert written == {**data, "at": "2026-01-31T12:00:00Z", "id": str(UUID(int=1))}
    del data["n"], data["text"]
    assert json.loads(AnswerRenderer().render(HttpRequest(), data, response_status=200))["at"] == "2026-01-31T12:00:00Z"
