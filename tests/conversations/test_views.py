"""The pages as the server makes them: what is there, for whom, with how many queries."""

import json
import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from conversations.models import Approval, Call, Conversation, Inspection, Message, Run, RunEvent
from tests.factories import make_message, make_run
from tools_admin.models import Agent

pytestmark = pytest.mark.django_db

QUERIES_EVERY_PAGE = 5  # session, user, permissions of the user and of groups, budgets


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", "ada@example.org", "a-long-password")


@pytest.fixture
def eve() -> User:
    return User.objects.create_user("eve", "eve@example.org", "a-long-password")


@pytest.fixture
def page(ada: User, client: Client) -> Client:
    client.force_login(ada)
    return client


def make_turn(
    user: User, question: str = "What is 2 + 3?", answer: str = "Five.", conversation: Conversation | None = None
) -> Run:
    """A finished turn with one tool call."""
    conversation = conversation or Conversation.objects.create(user=user, title=question)
    message = make_message(conversation, question)
    now = timezone.now()
    run = Run.objects.create(
        conversation=conversation, user=user, message=message, status="completed", reason="final_answer", answer=answer,
        iterations=2, usage={"input_tokens": 1200, "output_tokens": 40}, model={"label": "Test model"}, deadline=now,
        started_at=now - timedelta(seconds=4.2), ended_at=now, next_seq=4,
    )  # fmt: skip
    make_message(conversation, answer, "assistant", run=run)
    Call.objects.create(
        run=run, key="react/1/tool/0", kind="tool", effect_class="pure", state="succeeded", epoch=1, started_at=now,
        request={"name": "calculator", "arguments": {}}, result={"content": "2 + 3 = 5"}, ended_at=now,
    )  # fmt: skip
    step = {"type": "iteration", "iteration": 1, "call_id": "1/0", "tool_name": "calculator"}
    for seq, (channel, data) in enumerate(
        [("step", {**step, "status": "start"}), ("step", {**step, "status": "done"}), ("done", {"answer": answer})]
    ):
        RunEvent.objects.create(run=run, seq=seq + 1, channel=channel, data=data, key=str(seq), at=now)
    return run


def state_of(html: str) -> Any:
    found = re.search(r'<script id="page-data" type="application/json">(.*?)</script>', html, re.DOTALL)
    assert found
    return json.loads(found.group(1))


def test_strangers_to_the_site_are_asked_to_sign_in(client: Client) -> None:
    for address in ("/", f"/c/{uuid.uuid4()}/", "/runs/", f"/runs/{uuid.uuid4()}/"):
        answer = client.get(address)
        assert (answer.status_code, answer["Location"]) == (302, f"/account/login/?next={address}")


def test_an_empty_page_teaches_the_first_step(page: Client) -> None:
    Agent.objects.all().delete()
    assert "No agent is set up yet" in page.get("/").content.decode()
    Agent.objects.create(name="Helper", is_default=True, starters=["What is the time?"])
    html = page.get("/").content.decode()
    assert "What is the time?" in html
    assert "Helper" in html


def test_a_conversation_can_be_read_without_scripts(page: Client, ada: User) -> None:
    run = make_turn(ada, answer="Five & <b>no more</b>.")
    html = page.get(f"/c/{run.conversation_id}/").content.decode()
    assert "What is 2 + 3?" in html
    assert "Five &amp; &lt;b&gt;no more&lt;/b&gt;." in html
    for fact in ("Test model", "2 steps", "4.2 s", "1,240 tokens"):
        assert fact in html
    assert f'href="/runs/{run.id}/"' in html
    assert "sending needs it" in html


def test_the_page_state_holds_the_steps_and_where_to_go_on(page: Client, ada: User) -> None:
    run = make_turn(ada)
    (state,) = state_of(page.get(f"/c/{run.conversation_id}/").content.decode())["runs"]
    assert (state["id"], state["status"], state["seq"]) == (str(run.id), "completed", 3)
    assert [e["channel"] for e in state["events"]] == ["step", "step", "done"]
    assert "answer" not in state["events"][-1]["data"], "the answer stands in the page already"


def test_a_run_without_an_answer_stands_at_the_end(page: Client, ada: User) -> None:
    run = make_turn(ada)
    later = make_message(run.conversation, "And now?")
    active = Run.objects.create(conversation=run.conversation, user=ada, message=later, deadline=timezone.now())
    html = page.get(f"/c/{run.conversation_id}/").content.decode()
    assert html.index("And now?") < html.index(f'data-run="{active.id}"')


def test_of_failed_attempts_only_the_latest_is_shown(page: Client, ada: User) -> None:
    run = make_turn(ada)
    Message.objects.filter(run=run).delete()
    Conversation.objects.filter(id=run.conversation_id).update(leaf=run.message)
    now = timezone.now()
    Run.objects.filter(id=run.id).update(status="failed", answer="")
    second = Run.objects.create(
        conversation=run.conversation, user=ada, message=run.message, status="failed", ended_at=now, deadline=now
    )
    html = page.get(f"/c/{run.conversation_id}/").content.decode()
    assert str(second.id) in html
    assert f'data-run="{run.id}"' not in html


def test_nobody_finds_anothers_pages(page: Client, eve: User) -> None:
    run = make_turn(eve, question="My secret question")
    assert page.get(f"/c/{run.conversation_id}/").status_code == 404
    assert page.get(f"/runs/{run.id}/").status_code == 404
    for address in ("/", "/runs/", "/?q=secret"):
        assert "secret question" not in page.get(address).content.decode()


@pytest.mark.parametrize("turns", [1, 12])
def test_pages_make_a_fixed_number_of_queries(
    page: Client, ada: User, turns: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    run = make_turn(ada)
    for number in range(turns - 1):
        make_turn(ada, f"Question {number}", conversation=run.conversation)
        make_turn(ada, f"Other conversation {number}")
    for address, queries in {
        "/": 3,  # agent, list, what waits
        # conversation and agent, default agent, branch, runs, alternatives, events, list, what waits
        f"/c/{run.conversation_id}/": 8,
        "/approvals/": 5,  # approvals, questions, calls in doubt, list, what waits
        "/runs/": 4,  # count, runs, list, what waits
        f"/runs/{run.id}/": 4,  # run, calls, list, what waits
    }.items():
        with django_assert_num_queries(QUERIES_EVERY_PAGE + queries):
            page.get(address)


def test_old_messages_are_one_link_away(page: Client, ada: User) -> None:
    run = make_turn(ada, "The first question")
    for number in range(51):
        make_turn(ada, f"Question {number}", conversation=run.conversation)
    html = page.get(f"/c/{run.conversation_id}/").content.decode()
    assert "The first question" not in html.split('class="thread"')[1]
    (link,) = re.findall(r'class="earlier" href="(\?before=[^"]+)"', html)
    assert (
        "The first question" in page.get(f"/c/{run.conversation_id}/{link}").content.decode().split('class="thread"')[1]
    )


def test_the_list_is_grouped_searched_and_archived(page: Client, ada: User) -> None:
    now = timezone.now()
    for title, days, more in [
        ("Fresh", 0, {}),
        ("Old", 9, {}),
        ("Kept", 9, {"pinned": True}),
        ("Away", 9, {"archived": True}),
    ]:
        made = Conversation.objects.create(user=ada, title=title, **more)
        Conversation.objects.filter(id=made.id).update(updated_at=now - timedelta(days=days))
    html = page.get("/").content.decode()
    groups = dict(re.findall(r'data-group="(\w+)"[^>]*>.*?<ul>(.*?)</ul>', html, re.DOTALL))
    assert {key: re.findall(r'class="title">([^<]+)<', group) for key, group in groups.items()} == {
        "pinned": ["Kept"], "today": ["Fresh"], "yesterday": [], "older": ["Old"],
    }  # fmt: skip
    found = page.get("/?q=FRE").content.decode()
    assert "Fresh" in found
    assert "Old</span>" not in found
    assert "Away</span>" in page.get("/?archived=1").content.decode()


def test_a_run_page_shows_every_call_to_its_owner(page: Client, ada: User) -> None:
    run = make_turn(ada)
    html = page.get(f"/runs/{run.id}/").content.decode()
    for text in ("calculator", "react/1/tool/0", "2 + 3 = 5", "1200 / 40", "Completed"):
        assert text in html
    assert not Inspection.objects.exists()


def test_a_look_at_anothers_run_needs_the_permission_and_is_recorded(page: Client, ada: User, eve: User) -> None:
    run = make_turn(eve)
    ada.user_permissions.add(Permission.objects.get(codename="view_all_runs"))
    assert "Your look at it was recorded" in page.get(f"/runs/{run.id}/").content.decode()
    assert Inspection.objects.filter(run=run, user=ada).count() == 1


def test_pages_keep_a_strict_policy(page: Client) -> None:
    answer = page.get("/")
    policy = dict(
        part.strip().split(" ", 1) for part in answer["Content-Security-Policy"].split(";") if " " in part.strip()
    )
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert policy["style-src"] == "'self'"
    html = answer.content.decode()
    assert not re.search(r"<[^>]+ style=", html)
    assert not re.search(r"<script(?![^>]*(src=|nonce=|application/json))", html)


def test_only_reading_is_allowed(page: Client) -> None:
    assert page.post("/runs/").status_code == 405


def test_a_malformed_place_in_the_history_is_not_found(page: Client, ada: User) -> None:
    run = make_turn(ada)
    assert page.get(f"/c/{run.conversation_id}/?before=nonsense").status_code == 404


def test_a_page_that_missed_nothing_gets_nothing(page: Client, ada: User) -> None:
    run = make_turn(ada)
    conversation = Conversation.objects.get(id=run.conversation_id)
    address, since = f"/c/{conversation.id}/", {"since": conversation.updated_at.isoformat()}
    assert page.get(address, since).status_code == 204
    Conversation.objects.filter(id=conversation.id).update(updated_at=timezone.now())
    assert page.get(address, since).status_code == 200


def test_what_waits_is_listed_for_its_person_alone(page: Client, ada: User, eve: User) -> None:
    conversation = Conversation.objects.create(user=ada, title="Send it")
    message = make_message(conversation, "Send it")
    run = make_run(message, "waiting", reason="approval")
    Approval.objects.create(
        run=run, key="react/1/tool/0", tool_name="send_mail", arguments={"to": "<b>Bob</b>"}, expires_at=run.deadline
    )
    html = page.get("/approvals/").content.decode()
    assert "Send mail" in html
    assert "&lt;b&gt;Bob&lt;/b&gt;" in html
    assert "<b>Bob" not in html
    page.force_login(eve)
    assert "Send mail" not in page.get("/approvals/").content.decode()
