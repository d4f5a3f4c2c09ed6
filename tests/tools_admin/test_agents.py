"""Agents: for whom they are, who edits them, and every version of them."""

import threading

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client

from accounts.models import User
from tests.factories import make_user
from tools_admin.models import Agent, AgentVersion, Tool, Workflow
from tools_admin.services import agent_for, seed
from tools_admin.toolbox import tools_for
from tools_admin.versions import compare, go_back, publish

pytestmark = pytest.mark.django_db
ADMIN = "/admin/tools_admin/agent/"


@pytest.fixture
def sales() -> Group:
    return Group.objects.create(name="Sales")


@pytest.fixture
def ada(sales: Group) -> User:
    """Sells."""
    user = make_user("ada")
    user.groups.add(sales)
    return user


@pytest.fixture
def eve() -> User:
    return make_user("eve")


@pytest.fixture
def helper() -> Agent:
    seed()
    Agent.objects.all().delete()
    agent = Agent.objects.create(name="Helper", instructions="Be kind.\nBe short.", is_default=True)
    agent.tools.set(Tool.objects.filter(name="calculator"))
    return agent


def form_of(agent: Agent, **changes: object) -> dict[str, object]:
    values: dict[str, object] = {
        "name": agent.name, "icon": "bot", "description": "", "instructions": agent.instructions, "mode": "react",
        "tools": [tool.pk for tool in agent.tools.all()], "starters": "", "examples": "[]", "max_iterations": 50,
        "enabled": "on", "is_default": "on" if agent.is_default else "",
        "workflows-TOTAL_FORMS": 0, "workflows-INITIAL_FORMS": 0,
    }  # fmt: skip
    return values | changes


def test_an_agent_is_everybodys_or_its_groups(helper: Agent, sales: Group, ada: User, eve: User) -> None:
    seller = Agent.objects.create(name="Seller")
    seller.groups.add(sales)
    assert list(Agent.objects.visible_to(ada)) == [helper, seller]
    assert list(Agent.objects.visible_to(eve)) == [helper]
    Agent.objects.filter(pk=helper.pk).update(enabled=False)
    assert list(Agent.objects.visible_to(ada)) == [seller]
    eve.is_active = False
    assert not Agent.objects.visible_to(eve)


def test_who_may_not_use_an_agent_gets_another_one(helper: Agent, sales: Group, ada: User, eve: User) -> None:
    seller = Agent.objects.create(name="Seller")
    seller.groups.add(sales)
    assert agent_for(ada, seller.pk) == seller
    assert agent_for(eve, seller.pk) == helper
    assert agent_for(ada) == helper
    Agent.objects.filter(pk=helper.pk).update(enabled=False)
    assert agent_for(ada) == seller
    assert agent_for(eve) is None


def test_the_api_lists_what_the_caller_may_use(
    client: Client, helper: Agent, sales: Group, ada: User, eve: User
) -> None:
    Agent.objects.create(name="Seller").groups.add(sales)
    Tool.objects.get(name="current_time").groups.add(sales)
    names = {}
    for user in (ada, eve):
        client.force_login(user)
        names[user] = {
            address: [row["name"] for row in client.get(f"/api/v1/{address}").json()["items"]]
            for address in ("agents", "tools")
        }
        assert client.get("/api/v1/models").status_code == 200
    assert names[ada]["agents"] == ["Helper", "Seller"]
    assert names[eve]["agents"] == ["Helper"]
    assert set(names[ada]["tools"]) - set(names[eve]["tools"]) == {"current_time"}


def test_a_version_is_made_when_something_has_changed(helper: Agent, ada: User) -> None:
    first = publish(helper.pk, ada)
    assert publish(helper.pk) == first
    Agent.objects.filter(pk=helper.pk).update(instructions="Be kind.\nBe brief.")
    helper.tools.add(Tool.objects.get(name="current_time"))
    second = publish(helper.pk)
    assert (first.number, second.number) == (1, 2)
    helper.refresh_from_db()
    assert helper.current == second
    shown = {change.field: change.lines for change in compare(first, second)}
    assert shown["instructions"] == [(" ", "Be kind."), ("-", "Be short."), ("+", "Be brief.")]
    assert ("+", "current_time") in shown["tools"]
    assert set(shown) == {"instructions", "tools"}


def test_an_old_version_still_knows_what_the_agent_was(helper: Agent, ada: User) -> None:
    first = publish(helper.pk)
    Agent.objects.filter(pk=helper.pk).update(instructions="Other", max_tool_calls=3)
    helper.tools.clear()
    then = AgentVersion.objects.get(pk=first.pk).as_agent()
    assert (then.instructions, then.max_tool_calls) == ("Be kind.\nBe short.", None)
    assert [tool.name for tool in tools_for(then, ada)] == ["calculator"]
    Tool.objects.filter(name="calculator").update(enabled=False)
    assert tools_for(then, ada) == [], "what is switched off is off for old versions too"


def test_going_back_is_a_new_version(helper: Agent, ada: User) -> None:
    first = publish(helper.pk)
    Agent.objects.filter(pk=helper.pk).update(name="Renamed", instructions="Other")
    helper.tools.clear()
    publish(helper.pk)
    Agent.objects.create(name="Helper")
    made = go_back(first, ada)
    helper.refresh_from_db()
    assert (made.number, made.author, made.note) == (3, ada, "Back to version 1")
    assert (helper.instructions, helper.name) == ("Be kind.\nBe short.", "Renamed"), "its name is another one's by now"
    assert [tool.name for tool in helper.tools.all()] == ["calculator"]


def test_workflows_and_delegates_are_part_of_a_version(helper: Agent, ada: User) -> None:
    other = Agent.objects.create(name="Other")
    helper.delegates.add(other)
    tool = Tool.objects.get(name="current_time")
    Workflow.objects.create(agent=helper, name="Time", tool=tool, examples=["What time is it?"])
    first = publish(helper.pk)
    assert publish(helper.pk) == first
    helper.delegates.clear()
    helper.workflows.all().delete()
    then = first.as_agent()
    assert list(then.helpers) == [other]
    assert [(row.name, row.tool, row.examples) for row in then.lookups] == [("Time", tool, ["What time is it?"])]
    publish(helper.pk)
    go_back(first, ada)
    assert list(helper.helpers) == [other]
    assert [row.name for row in helper.lookups] == ["Time"]
    assert len(compare(None, first)) > 3


def test_going_back_does_without_what_is_gone(helper: Agent, ada: User) -> None:
    first = publish(helper.pk)
    Tool.objects.filter(name="calculator").delete()
    publish(helper.pk)
    assert go_back(first, ada).definition["tools"] == []
    assert "(deleted)" in str(compare(None, first))


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_makes_the_version(helper: Agent) -> None:
    made: list[int] = []

    def work() -> None:
        made.append(publish(helper.pk).number)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1] * 6


def test_saving_in_the_admin_makes_a_version_with_its_author(
    admin_client: Client, admin_user: User, helper: Agent
) -> None:
    answer = admin_client.post(f"{ADMIN}{helper.pk}/change/", form_of(helper, instructions="New", max_tokens=5000))
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    version = AgentVersion.objects.get()
    assert (version.author, version.definition["instructions"], version.definition["max_tokens"]) == (
        admin_user, "New", 5000,
    )  # fmt: skip
    assert len(version.definition["tools"]) == 1


def test_versions_are_shown_and_gone_back_to(admin_client: Client, helper: Agent) -> None:
    publish(helper.pk)
    Agent.objects.filter(pk=helper.pk).update(instructions="Be <b>loud</b>.")
    publish(helper.pk)
    address = f"{ADMIN}{helper.pk}/versions/"
    html = admin_client.get(address).content.decode()
    assert "Be &lt;b&gt;loud&lt;/b&gt;." in html
    assert "In use" in html
    assert admin_client.post(address, {"version": "1"}).status_code == 302
    helper.refresh_from_db()
    assert helper.instructions == "Be kind.\nBe short."
    for wrong in ("", "99", "x", "9" * 30):
        assert admin_client.post(address, {"version": wrong}).status_code == 404


def test_editors_edit_their_agents_and_nothing_else(
    client: Client, admin_client: Client, helper: Agent, sales: Group, ada: User
) -> None:
    other = Agent.objects.create(name="Other")
    admin_client.post(f"{ADMIN}{helper.pk}/change/", form_of(helper, editors=[sales.pk]))
    client.force_login(User.objects.get(pk=ada.pk))
    listed = client.get(ADMIN).content.decode()
    assert "Helper" in listed
    assert "Other" not in listed
    change = form_of(helper, instructions="By an editor", groups=[sales.pk], enabled="", is_default="")
    assert client.post(f"{ADMIN}{helper.pk}/change/", change).status_code == 302
    helper.refresh_from_db()
    assert (helper.instructions, helper.enabled, helper.is_default, helper.groups.count()) == (
        "By an editor", True, True, 0,
    )  # fmt: skip
    assert AgentVersion.objects.filter(author=ada).count() == 1
    for address in (f"{ADMIN}{other.pk}/change/", f"{ADMIN}{other.pk}/versions/"):
        assert client.get(address).status_code in (302, 403, 404)
        client.post(address, {"version": "1", **form_of(other, instructions="Mine")})
    other.refresh_from_db()
    assert other.instructions == ""
    assert client.get(f"{ADMIN}add/").status_code == 403
    assert client.post(f"{ADMIN}{helper.pk}/delete/", {"post": "yes"}).status_code == 403
    assert client.get("/admin/tools_admin/provider/").status_code == 403


def test_people_without_rights_find_no_versions(client: Client, helper: Agent, eve: User) -> None:
    publish(helper.pk)
    client.force_login(eve)
    assert client.get(f"{ADMIN}{helper.pk}/versions/").status_code in (302, 403)
