"""The record in the admin: who may look, what is shown, and that nothing can be changed."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from accounts.models import User
from conversations.models import Call, Conversation, Inspection, Message, Run
from tools_admin.models import Agent

pytestmark = pytest.mark.django_db

ROOT = "/admin/conversations/"
LISTS = ["run", "call", "inspection"]
CONTENT = "the content of a conversation"


def make_run(user: User, **values) -> Run:
    """A finished run with content in every field that can hold some."""
    now = timezone.now()
    conversation = Conversation.objects.create(user=user, title=CONTENT)
    message = Message.objects.create(conversation=conversation, role="user", content=CONTENT)
    run = Run.objects.create(
        conversation=conversation,
        user=user,
        agent=Agent.objects.first(),
        message=message,
        model={"name": "gpt-x"},
        usage={"input_tokens": 1200, "output_tokens": 34},
        answer=CONTENT,
        error=CONTENT,
        deadline=now,
        started_at=now - timedelta(seconds=4.2),
        **{"status": "completed", "ended_at": now, **values},
    )
    for key, request in (("react/1/llm", {"model": "gpt-x"}), ("react/1/tool/0", {"name": "calculator"})):
        Call.objects.create(
            run=run,
            key=key,
            kind=key.split("/")[2],
            request={**request, "text": CONTENT},
            result={"text": CONTENT},
            error=CONTENT,
            effect_class="read",
            state="succeeded",
            epoch=1,
            started_at=now - timedelta(seconds=1.5),
            ended_at=now,
        )
    Inspection.objects.create(run=run, user=user)
    return run


@pytest.fixture
def grace() -> User:
    return User.objects.create_user("grace")


@pytest.fixture
def run(grace) -> Run:
    return make_run(grace)


def staff(client, *permissions: str):
    user = User.objects.create_user("staff", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    return client


def test_the_lists_show_what_happened(admin_client, run):
    text = admin_client.get(f"{ROOT}run/").content.decode()
    for fact in ("grace", "Completed", "gpt-x", "4.2", "1234"):
        assert fact in text
    text = admin_client.get(f"{ROOT}call/").content.decode()
    for fact in ("grace", "react/1/tool/0", "calculator", "gpt-x", "1.5"):
        assert fact in text
    assert "grace" in admin_client.get(f"{ROOT}inspection/").content.decode()


@pytest.mark.parametrize("name", LISTS)
def test_the_lists_show_no_content(admin_client, run, name):
    assert CONTENT not in admin_client.get(f"{ROOT}{name}/").content.decode()


def test_conversations_and_messages_are_no_pages_of_the_admin(admin_client, run):
    for name in ("conversation", "message", "interrupt", "runevent"):
        assert admin_client.get(f"{ROOT}{name}/").status_code == 404


def test_runs_and_calls_need_view_all_runs(client, run):
    # The permissions that Django makes by itself are not enough, whatever their names say.
    staff(client, "view_run", "change_run", "delete_run", "view_call", "view_conversation", "change_user")
    assert client.get(f"{ROOT}run/").status_code == 403
    assert client.get(f"{ROOT}call/").status_code == 403
    assert client.get(f"{ROOT}run/{run.pk}/change/").status_code == 404


def test_view_all_runs_is_enough_for_runs_and_calls(client, run):
    staff(client, "view_all_runs")
    assert client.get(f"{ROOT}run/").status_code == 200
    assert client.get(f"{ROOT}call/").status_code == 200
    assert client.get(f"{ROOT}inspection/").status_code == 403


def test_a_row_leads_to_the_page_of_its_run(admin_client, run):
    page = f"/runs/{run.pk}/"
    call, look = run.calls.first(), run.inspections.first()
    for path in (f"run/{run.pk}", f"call/{call.pk}", f"inspection/{look.pk}"):
        answer = admin_client.get(f"{ROOT}{path}/change/")
        assert (answer.status_code, answer["Location"]) == (302, page)


@pytest.mark.parametrize("path", ["run/nonsense", "run/00000000-0000-0000-0000-000000000000", "call/x", "call/0"])
def test_an_id_that_is_none_is_404(admin_client, path):
    assert admin_client.get(f"{ROOT}{path}/change/").status_code == 404


@pytest.mark.parametrize("name", LISTS)
def test_nothing_can_be_added_changed_or_deleted(admin_client, run, name):
    row = {"run": run, "call": run.calls.first(), "inspection": run.inspections.first()}[name]
    before = list(type(row).objects.order_by("pk").values())
    assert admin_client.get(f"{ROOT}{name}/add/").status_code == 403
    assert admin_client.post(f"{ROOT}{name}/{row.pk}/delete/", {"post": "yes"}).status_code == 403
    admin_client.post(f"{ROOT}{name}/{row.pk}/change/", {"status": "failed", "answer": "forged"})
    admin_client.post(f"{ROOT}{name}/", {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    assert list(type(row).objects.order_by("pk").values()) == before


def test_whoever_has_run_something_cannot_be_deleted(admin_client, run, grace):
    admin_client.post(f"/admin/accounts/user/{grace.pk}/delete/", {"post": "yes"})
    admin_client.post(
        "/admin/accounts/user/", {"action": "delete_selected", "_selected_action": [grace.pk], "post": "yes"}
    )
    assert User.objects.filter(pk=grace.pk).exists()
    assert Run.objects.filter(pk=run.pk).exists()


def runs_shown(client, query: str) -> int:
    return int(client.get(f"{ROOT}run/?{query}", follow=True).context["cl"].result_count)


def test_runs_are_filtered_and_found(admin_client, run, grace):
    other = make_run(User.objects.create_user("heidi"), status="failed")
    today = timezone.now().date()
    assert runs_shown(admin_client, "status__exact=failed") == 1
    assert runs_shown(admin_client, f"user__id__exact={grace.pk}") == 1
    assert runs_shown(admin_client, f"agent__id__exact={run.agent_id}") == 2
    assert runs_shown(admin_client, f"created_at_from={today - timedelta(days=1)}") == 2
    assert runs_shown(admin_client, f"created_at_to={today - timedelta(days=1)}") == 0
    assert runs_shown(admin_client, "q=heidi") == 1
    assert runs_shown(admin_client, f"q={str(other.pk)[:13]}") == 1


@pytest.mark.parametrize(
    "query",
    [
        f"answer__contains={CONTENT}",
        f"error__startswith={CONTENT}",
        "conversation__title__contains=the",
        "message__content__contains=the",
        "user__password__startswith=x",
        "calls__request__text__contains=the",
    ],
)
def test_a_filter_cannot_spell_out_content(admin_client, run, query):
    assert admin_client.get(f"{ROOT}run/?{query}").status_code == 400


@pytest.mark.parametrize("query", ["created_at_from=yesterday", "user__id__exact=x", "q=%00", "p=x", "o=x", "o=99"])
def test_odd_queries_are_no_errors(admin_client, run, query):
    assert admin_client.get(f"{ROOT}run/?{query}", follow=True).status_code in (200, 400)


@pytest.mark.parametrize("name", LISTS)
def test_lists_take_the_same_number_of_queries_for_many_rows(admin_client, django_assert_max_num_queries, name):
    def fill(first: int, last: int) -> None:
        for number in range(first, last):
            make_run(User.objects.create_user(f"user{number}"))

    fill(0, 2)
    admin_client.get(f"{ROOT}{name}/")
    with django_assert_max_num_queries(50) as few:
        admin_client.get(f"{ROOT}{name}/")
    fill(2, 12)
    with django_assert_max_num_queries(len(few)):
        assert admin_client.get(f"{ROOT}{name}/").status_code == 200
