"""Calls of unknown outcome in the admin: who may settle one, what becomes of it, and who said so."""

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from conversations import reconciliation
from conversations.errors import NotFound
from conversations.models import Approval, Call, Inspection, Run, Settlement
from tests.factories import make_conversation, make_message, make_run, make_user

pytestmark = pytest.mark.django_db(transaction=True)
LIST = "/admin/conversations/doubt/"


@pytest.fixture
def grace() -> User:
    """Holds `approve` and nothing else."""
    user = make_user("grace")
    user.user_permissions.add(Permission.objects.get(codename="approve"))
    return user


@pytest.fixture
def admin(client: Client, grace: User) -> Client:
    client.force_login(grace)
    return client


def in_doubt(owner: User | None = None) -> Call:
    run = make_run(make_message(make_conversation(owner or make_user())), "waiting", reason="reconciliation")
    request = {"name": "send_mail", "arguments": {"to": "<b>bob</b>"}}
    return Call.objects.create(
        run=run, key="react/1/tool/0", kind="tool", effect_class="once", state="unknown", epoch=1,
        request=request, started_at=timezone.now(),
    )  # fmt: skip


def settle(admin: Client, call: Call, **said: str) -> str:
    return admin.post(f"{LIST}{call.pk}/change/", said, follow=True).content.decode()


def test_what_is_in_doubt_is_listed_and_shown(admin: Client) -> None:
    call = in_doubt()
    listed = admin.get(LIST).content.decode()
    assert "send_mail" in listed
    assert "bob" not in listed
    form = admin.get(f"{LIST}{call.pk}/change/").content.decode()
    assert "&lt;b&gt;bob&lt;/b&gt;" in form
    assert Inspection.objects.filter(run=call.run, user__username="grace").count() == 1


def test_done_with_its_result(admin: Client, grace: User) -> None:
    call = in_doubt()
    assert "the run goes on" in settle(admin, call, outcome="done", result="Ticket 12")
    call.refresh_from_db()
    assert (call.state, call.result["content"], call.result["is_error"]) == ("succeeded", "Ticket 12", False)
    assert Run.objects.get().status == "queued"
    said = Settlement.objects.get()
    assert (said.user, said.outcome, said.result, said.tool_name) == (grace, "done", "Ticket 12", "send_mail")
    assert "send_mail" not in admin.get(LIST).content.decode()


def test_not_done_is_told_to_the_agent(admin: Client) -> None:
    call = in_doubt()
    settle(admin, call, outcome="not_done")
    call.refresh_from_db()
    assert call.result["is_error"]


def test_done_now_uses_the_approval_again(admin: Client) -> None:
    call = in_doubt()
    asked = {"tool_name": "send_mail", "arguments": {}, "digest": "d", "expires_at": timezone.now()}
    approval = Approval.objects.create(run=call.run, key=call.key, state="consumed", **asked)
    settle(admin, call, outcome="retry")
    approval.refresh_from_db()
    assert approval.state == "approved"
    assert not Call.objects.exists()
    assert Settlement.objects.get().outcome == "retry"


def test_what_is_no_answer_is_asked_again(admin: Client) -> None:
    call = in_doubt()
    for said in ({}, {"outcome": "perhaps"}, {"outcome": "done", "result": "x" * 50_001}):
        assert "What became of this call?" in settle(admin, call, **said)
    assert Run.objects.get().status == "waiting"


def test_one_of_two_settles_it(admin: Client, grace: User) -> None:
    call = in_doubt()
    reconciliation.resolve(call.run.user, call.run_id, call.key, "done")
    assert admin.post(f"{LIST}{call.pk}/change/", {"outcome": "not_done"}).status_code == 404
    assert Settlement.objects.get().user == call.run.user


@pytest.mark.parametrize("permission", ["", "view_all_runs", "configure", "manage_people"])
def test_others_find_nothing(client: Client, permission: str) -> None:
    call = in_doubt()
    user = make_user("eve", is_staff=True)
    if permission:
        user.user_permissions.add(Permission.objects.get(codename=permission))
    client.force_login(user)
    assert client.get(LIST).status_code == 403
    assert client.post(f"{LIST}{call.pk}/change/", {"outcome": "done"}).status_code in (403, 404)
    with pytest.raises(NotFound):
        reconciliation.resolve(user, call.run_id, call.key, "done")
    assert Run.objects.get().status == "waiting"


def test_filters_reach_no_content(admin: Client) -> None:
    in_doubt()
    assert "bob" not in admin.get(f"{LIST}?request__contains=bob", follow=True).content.decode()


def test_the_list_makes_a_fixed_number_of_queries(
    admin: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(20):
        in_doubt(make_user(f"user{number}"))
    with django_assert_max_num_queries(12):
        admin.get(LIST)


def test_settled_calls_are_on_record(client: Client) -> None:
    call = in_doubt()
    reconciliation.resolve(call.run.user, call.run_id, call.key, "done", "a secret result")
    auditor = make_user("audrey")
    auditor.user_permissions.add(Permission.objects.get(codename="view_all_runs"))
    client.force_login(auditor)
    html = client.get("/admin/conversations/settlement/").content.decode()
    assert "send_mail" in html
    assert "a secret result" not in html
