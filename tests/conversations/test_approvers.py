"""Deciding on other people's calls: for holders of `approve`, and on record."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from accounts.models import User
from conversations.models import Approval, Inspection
from tests.factories import make_conversation, make_message, make_run, make_user
from tools_admin.models import Tool


@pytest.fixture
def approval(db: None) -> Approval:
    run = make_run(make_message(make_conversation(make_user("owner")), "Write to sales"), "waiting", reason="approval")
    return Approval.objects.create(
        run=run,
        key="react/0/tool/0",
        tool_name="send_mail",
        arguments={"to": "sales@example.org"},
        digest="0" * 64,
        expires_at=timezone.now() + timedelta(days=1),
    )


@pytest.fixture
def approver(db: None) -> User:
    user = make_user("approver")
    user.groups.add(Group.objects.get(name="Approvers"))
    return user


def decide(client: Client, approval: Approval, decision: str) -> int:
    body: Any = json.dumps({"decision": decision})
    return client.post(f"/api/v1/approvals/{approval.id}", body, content_type="application/json").status_code


@pytest.mark.django_db(transaction=True)
def test_an_approver_sees_whose_call_it_is_and_decides(client: Client, approval: Approval, approver: User) -> None:
    client.force_login(approver)
    page = client.get("/approvals/").content.decode()
    assert "For owner, who asked: Write to sales" in page and "sales@example.org" in page
    assert decide(client, approval, "approve") == 200
    approval.refresh_from_db()
    assert approval.state == Approval.State.APPROVED and approval.decided_by == approver


def test_each_look_is_recorded(client: Client, approval: Approval, approver: User) -> None:
    client.force_login(approver)
    client.get("/approvals/")
    client.get("/api/v1/approvals")
    assert Inspection.objects.filter(user=approver, run=approval.run).count() == 2
    client.force_login(approval.run.user)
    client.get("/approvals/")
    assert Inspection.objects.count() == 2, "one's own are nobody's business"


@pytest.mark.django_db(transaction=True)
def test_only_the_owner_withdraws(client: Client, approval: Approval, approver: User) -> None:
    client.force_login(approver)
    assert decide(client, approval, "withdraw") == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("group", [None, "Auditors", "Configuration", "People managers"])
def test_nobody_else_sees_or_decides(client: Client, approval: Approval, group: str | None) -> None:
    stranger = make_user("stranger")
    if group:
        stranger.groups.add(Group.objects.get(name=group))
    client.force_login(stranger)
    assert "sales@example.org" not in client.get("/approvals/").content.decode()
    assert decide(client, approval, "approve") == 404


# A tool's own approvers -----------------------------------------------------------------------------------------------


@pytest.fixture
def finance(approval: Approval) -> Group:
    """The group that decides on the tool of the request."""
    group = Group.objects.create(name="Finance")
    tool = Tool.objects.get(name="calculator")
    Tool.objects.filter(pk=tool.pk).update(name=approval.tool_name, approvers=group)
    return group


@pytest.mark.django_db(transaction=True)
def test_where_a_group_decides_its_members_do(client: Client, approval: Approval, finance: Group) -> None:
    member = make_user("member")
    member.groups.add(finance)
    client.force_login(member)
    assert "For owner, who asked: Write to sales" in client.get("/approvals/").content.decode()
    assert Inspection.objects.filter(user=member, run=approval.run).exists()
    assert decide(client, approval, "approve") == 200
    approval.refresh_from_db()
    assert approval.decided_by == member


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("decision", ["approve", "allow", "reject"])
def test_where_a_group_decides_the_owner_never_does(
    client: Client, approval: Approval, finance: Group, decision: str
) -> None:
    owner = approval.run.user
    owner.groups.add(finance, Group.objects.get(name="Approvers"))
    client.force_login(owner)
    assert "sales@example.org" in client.get("/approvals/").content.decode()
    assert decide(client, approval, decision) == 403
    approval.refresh_from_db()
    assert approval.state == Approval.State.PENDING
    assert decide(client, approval, "withdraw") == 200


@pytest.mark.django_db(transaction=True)
def test_members_of_other_groups_see_nothing(client: Client, approval: Approval, finance: Group) -> None:
    stranger = make_user("stranger")
    stranger.groups.add(Group.objects.create(name="Sales"))
    client.force_login(stranger)
    assert decide(client, approval, "approve") == 404


def test_an_odd_state_is_refused_in_words(client: Client, approval: Approval) -> None:
    client.force_login(approval.run.user)
    assert client.get("/api/v1/approvals", {"state": "\0"}).status_code == 422
