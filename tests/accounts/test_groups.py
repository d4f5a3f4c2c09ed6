"""A group's page: its rights, and everything that is granted to it."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.admin.groups import grants
from accounts.models import User
from accounts.roles import EDIT_AGENTS, MANAGE_PEOPLE, groups_within, permissions_called, seed_roles
from tests.rows import make_row

NAMES = sorted(name for name, _field in grants())


@pytest.fixture
def team(db: None) -> Group:
    return Group.objects.create(name="Team")


def page_of(group: Group) -> str:
    return f"/admin/auth/group/{group.pk}/change/"


def granted(group: Group) -> dict[str, list[Any]]:
    return {name: list(field.model._default_manager.filter(**{field.name: group})) for name, field in grants()}


def test_models_agents_and_tools_are_granted_in_one_place() -> None:
    assert {"languagemodel_groups", "agent_groups", "tool_groups"} <= set(NAMES)
    assert not any(name.startswith(("routeentry", "invitation", "user_")) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_grant_is_given_and_taken_on_the_groups_page(client: Client, ada: User, team: Group, name: str) -> None:
    client.force_login(ada)
    field = dict(grants())[name]
    other = Group.objects.create(name="Other")
    one, two = make_row(field.model), make_row(field.model)
    getattr(two, field.name).add(team, other)
    client.post(page_of(team), {"name": "Team", name: [one.pk]})
    assert granted(team)[name] == [one]
    assert granted(other)[name] == [two], "nobody else loses anything"
    client.post(page_of(team), {"name": "Team"})
    assert granted(team)[name] == []


def test_what_no_group_is_granted_says_that_it_is_everybodys(client: Client, ada: User, team: Group) -> None:
    client.force_login(ada)
    field = dict(grants())["languagemodel_groups"]
    model = make_row(field.model)
    assert f"{model} (open to everybody)" in client.get(page_of(team)).content.decode()
    model.groups.add(team)
    assert f"{model} (open to everybody)" not in client.get(page_of(team)).content.decode()


def test_the_page_takes_the_same_number_of_queries_for_many_rows(client: Client, ada: User, team: Group) -> None:
    client.force_login(ada)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(page_of(team)).status_code == 200
        return len(captured)

    for _name, field in grants():
        make_row(field.model)
    queries()
    few = queries()
    for _name, field in grants():
        for _ in range(10):
            make_row(field.model)
    assert queries() == few


def test_who_manages_people_grants_nothing(client: Client, grace: User, team: Group) -> None:
    grace.user_permissions.set(permissions_called([MANAGE_PEOPLE]))
    client.force_login(grace)
    row = make_row(dict(grants())["agent_groups"].model)
    client.post(page_of(team), {"name": "Team 2", "agent_groups": [row.pk]})
    team.refresh_from_db()
    assert team.name == "Team 2" and granted(team)["agent_groups"] == []


def test_groups_with_more_rights_than_ones_own_are_out_of_reach(client: Client, grace: User) -> None:
    grace.user_permissions.set(permissions_called([MANAGE_PEOPLE]))
    client.force_login(grace)
    administrators = Group.objects.get(name="Administrators")
    assert client.post(page_of(administrators), {"name": "Mine"}).status_code == 403
    boss = User.objects.create_user("boss", "boss@example.org")
    boss.groups.add(administrators)
    assert client.post(f"/admin/accounts/user/{boss.pk}/change/", {"email": "mine@example.org"}).status_code == 403
    chess = Group.objects.create(name="Chess")
    clerk = User.objects.create_user("clerk", email="clerk@example.org")
    client.post(
        f"/admin/accounts/user/{clerk.pk}/change/",
        {"username": "clerk", "is_active": "on", "groups": [administrators.pk]},
    )
    assert not clerk.groups.exists()
    client.post(
        f"/admin/accounts/user/{clerk.pk}/change/", {"username": "clerk", "is_active": "on", "groups": [chess.pk]}
    )
    assert list(clerk.groups.all()) == [chess]


def test_default_roles_are_made_once_and_then_left_alone(db: None) -> None:
    assert {"Administrators", "Auditors", "Members"} <= set(Group.objects.values_list("name", flat=True))
    Group.objects.exclude(name="Members").delete()
    seed_roles()
    assert Group.objects.count() == 1


def test_superusers_hand_out_every_group(ada: User) -> None:
    assert groups_within(ada).count() == Group.objects.count()


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("_groups")])
def test_no_end_of_a_group_opens_what_was_granted_to_it_alone(
    client: Client, ada: User, grace: User, team: Group, name: str
) -> None:
    field = dict(grants())[name]
    row = make_row(field.model)
    row.groups.add(team)
    grace.user_permissions.set(permissions_called([MANAGE_PEOPLE]))
    for person in (ada, grace):
        client.force_login(person)
        answer = client.post(f"/admin/auth/group/{team.pk}/delete/", {"post": "yes"})
        assert str(row) in answer.content.decode(), "what stands in the way is named"
        listed = {"action": "delete_selected", "_selected_action": [team.pk], "post": "yes"}
        client.post("/admin/auth/group/", listed)
        assert list(row.groups.all()) == [team]
    row.groups.add(Group.objects.create(name="Other"))
    client.post(f"/admin/auth/group/{team.pk}/delete/", {"post": "yes"})
    assert not Group.objects.filter(pk=team.pk).exists()
    assert row.groups.count() == 1


def test_saving_a_group_leaves_it_the_right_to_edit_its_agents(client: Client, ada: User, team: Group) -> None:
    team.permissions.set(permissions_called([EDIT_AGENTS]))
    client.force_login(ada)
    offered = permissions_called([MANAGE_PEOPLE])
    client.post(page_of(team), {"name": "Team", "permissions": [permission.pk for permission in offered]})
    assert set(team.permissions.all()) == set(permissions_called([EDIT_AGENTS, MANAGE_PEOPLE]))


def test_who_is_made_an_editor_on_the_groups_page_finds_the_agents_in_the_admin(
    client: Client, ada: User, grace: User, team: Group
) -> None:
    agent = make_row(dict(grants())["agent_editors"].model)
    grace.groups.add(team)
    client.force_login(ada)
    client.post(page_of(team), {"name": "Team", "agent_editors": [agent.pk]})
    client.force_login(grace)
    assert str(agent) in client.get("/admin/tools_admin/agent/").content.decode()
    client.force_login(ada)
    client.post(page_of(team), {"name": "Team"})
    client.force_login(grace)
    assert client.get("/admin/tools_admin/agent/").status_code in (302, 403)
