"""Connectors as administrators and runs meet them: rows, rights, credentials, the breaker, what is masked."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone
from pydantic import SecretStr

from accounts.models import User
from conversations.permission import PERMITTED
from tests.factories import make_user
from tests.tools_admin.connectors.recording import Service
from tools_admin import breaker, credentials
from tools_admin.choosing import choose, offers
from tools_admin.connectors.base import ToolSpec
from tools_admin.models import Agent, AuthScheme, Connector, Credential, Tool
from tools_admin.toolbox import engine_tools, tools_for

pytestmark = pytest.mark.django_db(transaction=True)  # calls read their rows in threads of their own
ROOT = "/admin/tools_admin/"
CANARY = "sk-canary-77/é&x"


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture
def shop(service: Service) -> Connector:
    return Connector.objects.create(
        kind="http", name="Shop", prefix="shop", inner=True, settings={"base_url": f"{service.url}/api"}
    )


def make_tool(connector: Connector, name: str = "get_order", **values: Any) -> Tool:
    definition = values.pop("definition", {"method": "GET", "path": "/orders/{id}"})
    parameters = {"type": "object", "properties": {"id": {"type": "string"}}}
    values = {"effect_class": "read", "description": "Get an order.", **values}
    return Tool.objects.create(
        connector=connector, key=name, name=name, definition=definition, parameters=parameters, **values
    )


def call(tool: Tool, user: User, **arguments: Any) -> Any:
    [made] = engine_tools([Tool.objects.select_related("connector").get(pk=tool.pk)], user)
    return async_to_sync(made.execute)(arguments)


# Who may use what -----------------------------------------------------------------------------------------------------


def test_a_tool_is_seen_by_its_groups_while_it_and_its_connector_are_on(shop: Connector) -> None:
    tool, user = make_tool(shop), make_user()
    group = Group.objects.create(name="Sales")

    def seen() -> bool:
        [row] = _permitted(tool, user) or [None]
        visible = Tool.objects.visible_to(user).filter(pk=tool.pk).count()
        assert bool(visible) == (row is not None), "both ways to ask give the same answer"
        assert visible in (0, 1)
        return bool(visible)

    assert seen()
    tool.groups.add(group, Group.objects.create(name="Others"))
    assert not seen()
    user.groups.add(group)
    assert seen()
    for row in (tool, shop):
        type(row).objects.filter(pk=row.pk).update(enabled=False)
        assert not seen()
        type(row).objects.filter(pk=row.pk).update(enabled=True)
    User.objects.filter(pk=user.pk).update(is_active=False)
    user.refresh_from_db()
    assert not seen()


@pytest.mark.parametrize("approval", Tool.Approval)
@pytest.mark.parametrize("effect", Tool.EffectClass)
def test_when_a_call_asks_first(shop: Connector, approval: Tool.Approval, effect: Tool.EffectClass) -> None:
    tool, user = make_tool(shop, approval=approval, effect_class=effect), make_user()
    expected = approval == "always" or (approval == "writes" and effect in ("idempotent", "once"))
    assert tool.asks_first == expected
    assert _permitted(tool, user) == [expected]


def test_what_is_not_known_to_only_read_asks_first() -> None:
    assert Tool().asks_first


def _permitted(tool: Tool, user: User) -> list[bool]:
    from django.db import connection

    with connection.cursor() as cursor:
        agent = Agent.objects.create(name=uuid4().hex)
        cursor.execute(PERMITTED, [[user.pk], [agent.pk], [tool.name]])
        assert cursor.fetchall() == [], "an agent without it cannot call it"
        agent.tools.add(tool)
        cursor.execute(PERMITTED, [[user.pk], [agent.pk], [tool.name]])
        return [asks for _place, asks, *_rest in cursor.fetchall()]


def test_an_agent_that_is_taken_from_a_person_calls_nothing_more(shop: Connector) -> None:
    from django.db import connection

    tool, user, agent = make_tool(shop), make_user(), Agent.objects.create(name="A")
    agent.tools.add(tool)
    group = Group.objects.create(name="Few")
    agent.groups.add(group)

    def calls() -> int:
        with connection.cursor() as cursor:
            cursor.execute(PERMITTED, [[user.pk], [agent.pk], [tool.name]])
            return len(cursor.fetchall())

    user.groups.add(group)
    assert calls() == 1
    user.groups.clear()
    assert calls() == 0


def test_an_agent_has_its_tools_and_those_of_its_connectors(shop: Connector) -> None:
    agent, user = Agent.objects.create(name="A"), make_user()
    one, other = make_tool(shop, "one"), make_tool(shop, "other")
    agent.tools.add(one)
    assert tools_for(agent, user) == [one]
    agent.connectors.add(shop)
    assert tools_for(agent, user) == [one, other]


# Calls ----------------------------------------------------------------------------------------------------------------


def test_a_change_of_the_connector_counts_from_the_next_call(shop: Connector, service: Service) -> None:
    tool, user = make_tool(shop), make_user()
    [made] = engine_tools([Tool.objects.select_related("connector").get(pk=tool.pk)], user)
    assert not async_to_sync(made.execute)({"id": "1"}).is_error
    Connector.objects.update(settings={"base_url": f"{service.url}/v2"})
    async_to_sync(made.execute)({"id": "1"})
    assert service.last.target == "/v2/orders/1"
    Connector.objects.update(enabled=False)
    assert "switched off" in async_to_sync(made.execute)({"id": "1"}).content
    assert len(service.requests) == 2


def test_an_inner_host_is_reached_only_when_its_connector_allows_it(shop: Connector, service: Service) -> None:
    Connector.objects.update(inner=False)
    assert "public internet" in call(make_tool(shop), make_user(), id="1").content
    assert service.requests == []


@pytest.mark.parametrize(
    ("scheme", "secret", "arrives"),
    [
        ({"type": "bearer"}, {"token": CANARY}, "authorization"),
        ({"type": "api_key", "parameter": "X-Key"}, {"token": CANARY}, "x-key"),
        ({"type": "api_key", "parameter": "key", "place": "cookie"}, {"token": "sk-canary-77"}, "cookie"),
        ({"type": "basic"}, {"username": "ada", "password": CANARY}, "authorization"),
        ({"type": "api_key", "parameter": "key", "place": "query"}, {"token": CANARY}, ""),
    ],
)
def test_a_secret_arrives_and_comes_back_in_no_result(
    shop: Connector, service: Service, caplog: Any, scheme: Any, secret: Any, arrives: str
) -> None:
    row = AuthScheme.objects.create(connector=shop, **scheme)
    credentials.store(row, None, secret)
    call(make_tool(shop), make_user(), id="1")
    sent = service.last
    assert arrives in sent.headers if arrives else "key=sk-canary-77%2F" in sent.target
    # A service that echoes what it was sent, in a result and in an error.
    for status in (200, 500):
        echoed = f"{sent.target} {json.dumps(sent.headers)} {CANARY} {json.dumps(CANARY)}"
        service.reply = (status, "text/plain", echoed.encode())
        result = call(Tool.objects.get(name="get_order"), make_user(f"u{status}"), id="1")
        assert "canary" not in result.content and "•••" in result.content
        for value in [sent.headers.get(arrives, "-" * 9).split(" ")[-1].removeprefix("key=")]:
            assert value not in result.content
    assert "canary" not in caplog.text


def test_a_secret_goes_to_no_other_origin(shop: Connector, service: Service) -> None:
    credentials.store(AuthScheme.objects.create(connector=shop), None, {"token": CANARY})
    with Service() as other:
        moved = f"{other.url}/api"
        Connector.objects.update(settings={"base_url": moved})
        result = call(make_tool(shop), make_user(), id="1")
        assert "No credential is set up" in result.content
        assert other.requests == [] and service.requests == []


def test_people_use_their_own_credential_and_the_shared_one_only_where_that_is_allowed(
    shop: Connector, service: Service
) -> None:
    scheme = AuthScheme.objects.create(connector=shop, per_user=True)
    tool, ada, bob = make_tool(shop), make_user("ada"), make_user("bob")
    credentials.store(scheme, None, {"token": "of-everybody"})
    credentials.store(scheme, ada, {"token": "of-ada"})
    call(tool, ada, id="1")
    assert service.last.headers["authorization"] == "Bearer of-ada"
    assert "My connections" in call(tool, bob, id="1").content
    AuthScheme.objects.update(shared_fallback=True)
    call(tool, bob, id="1")
    assert service.last.headers["authorization"] == "Bearer of-everybody"
    assert [c.user for c in Credential.objects.visible_to(ada)] == [ada]
    assert not Credential.objects.visible_to(bob).exists()


def test_a_failing_service_is_left_alone_for_a_while(shop: Connector, service: Service) -> None:
    tool, user = make_tool(shop), make_user()
    service.reply = (503, "text/plain", b"")
    for _ in range(breaker.FAILURES):
        assert "503" in call(tool, user, id="1").content
    seen = len(service.requests)
    assert "left alone" in call(tool, user, id="1").content
    assert len(service.requests) == seen
    Connector.objects.update(paused_until=timezone.now() - timedelta(seconds=1))
    service.reply = (200, "text/plain", b"back")
    assert call(tool, user, id="1").content == "back"
    shop.refresh_from_db()
    assert (shop.failures, shop.paused_until, shop.last_error) == (0, None, "")


def test_an_error_of_the_service_is_no_failure_of_the_connector(shop: Connector, service: Service) -> None:
    service.reply = (404, "text/plain", b"")
    for _ in range(breaker.FAILURES + 1):
        assert (
            "404"
            in call(Tool.objects.filter(connector=shop).first() or make_tool(shop), make_user(str(_)), id="1").content
        )
    shop.refresh_from_db()
    assert shop.failures == 0


# Choosing tools -------------------------------------------------------------------------------------------------------


def spec(key: str, **values: Any) -> ToolSpec:
    from agentapp.engine import EffectClass

    effect = EffectClass(values.pop("effect", "read"))
    parameters = {"type": "object", "properties": values.pop("properties", {})}
    return ToolSpec(values.pop("name", key), f"Does {key}.", parameters, effect_class=effect, key=key, **values)


def test_looking_again_shows_differences_and_keeps_decisions(shop: Connector) -> None:
    first = [spec("a"), spec("b"), spec("c")]
    choose(shop, first, ["a", "b"], ["a", "b", "c"])
    group = Group.objects.create(name="Sales")
    Tool.objects.get(key="a").groups.add(group)
    Tool.objects.filter(key="a").update(approval="never", enabled=False, timeout=9)
    again = [spec("a", effect="once", properties={"x": {}}), spec("c"), spec("d")]
    found = {
        offer.key: (offer.tool is not None, offer.spec is not None, offer.changes) for offer in offers(shop, again)
    }
    assert found == {
        "a": (True, True, ("parameters", "effect")),
        "b": (True, False, ()),
        "c": (False, True, ()),
        "d": (False, True, ()),
    }
    assert Tool.objects.get(key="a").effect_class == "read", "looking alone changes nothing"
    choose(shop, again, ["a"], ["a", "b", "c", "d"])
    tool = Tool.objects.get(key="a")
    assert (tool.effect_class, tool.approval, tool.enabled, tool.timeout) == ("once", "never", False, 9)
    assert list(tool.groups.all()) == [group]
    assert [t.key for t in shop.tools.all()] == ["a"]


def test_an_operation_that_says_it_reads_now_stays_what_it_was(shop: Connector) -> None:
    choose(shop, [spec("a", effect="once")], ["a"], ["a"])
    choose(shop, [spec("a", effect="read")], ["a"], ["a"])
    assert Tool.objects.get(key="a").effect_class == "once"


def test_what_a_search_hides_stays_chosen(shop: Connector) -> None:
    specs = [spec("a"), spec("b")]
    choose(shop, specs, ["a", "b"], ["a", "b"])
    choose(shop, specs, [], ["a"])
    assert [tool.key for tool in shop.tools.all()] == ["b"]


def test_names_are_safe_stable_and_different(shop: Connector) -> None:
    specs = [
        spec("k1", name="issues/list for-repo"),
        spec("k2", name="issues_list_for_repo"),
        spec("k3", name="ü" * 99),
        spec("k4", name="x" * 99),
        spec("k5", name="x" * 98),
        spec("k6", name="shop_get"),
    ]
    keys = [s.key for s in specs]
    choose(shop, specs, keys, keys)
    names = dict(Tool.objects.filter(connector=shop).values_list("key", "name"))
    assert names["k1"] == "shop_issues_list_for_repo"
    assert names["k2"].startswith("shop_issues_list_for_repo_")
    assert (names["k3"], names["k6"]) == ("shop_tool", "shop_get")
    assert len(set(names.values())) == 6 and all(len(name) <= 64 for name in names.values())
    choose(shop, list(reversed(specs)), keys, keys)
    assert dict(Tool.objects.filter(connector=shop).values_list("key", "name")) == names


# The admin ------------------------------------------------------------------------------------------------------------

NO_SCHEMES = {f"schemes-{name}": "0" for name in ("TOTAL_FORMS", "INITIAL_FORMS", "MIN_NUM_FORMS", "MAX_NUM_FORMS")}


def add(client: Client, kind: str, **values: Any) -> Any:
    data = {"name": "Shop", "timeout": "10", "enabled": "on", "_save": "1", **NO_SCHEMES, **values}
    return client.post(f"{ROOT}connector/add/?kind={kind}", data)


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    return client


def test_a_connector_is_added_by_its_kind_and_an_action_is_written_and_tried(admin: Client, service: Service) -> None:
    page = admin.get(f"{ROOT}connector/add/").content.decode()
    assert "?kind=http" in page and "?kind=openapi" in page and "?kind=builtin" not in page
    answer = add(admin, "http", base_url=service.url, headers="{}", inner="on")
    connector = Connector.objects.get(name="Shop")
    assert answer["Location"] == f"{ROOT}connector/{connector.pk}/tools/"
    assert "No action yet" in admin.get(answer["Location"]).content.decode()
    data = {
        "name": "list_orders",
        "description": "List orders.",
        "method": "GET",
        "path": "/orders",
        "query": '{"status": "{status}"}',
        "headers": "{}",
        "body": "null",
        "select": "length(@)",
        "parameters": "{}",
        "effect_class": "read",
        "approval": "writes",
        "timeout": "10",
        "price": "0",
        "max_result_chars": "1000",
        "enabled": "on",
    }
    assert admin.post(f"{ROOT}tool/add/?connector={connector.pk}", data).status_code == 302
    tool = Tool.objects.get(name="list_orders")
    assert list(tool.parameters["properties"]) == ["status"]
    service.reply = (200, "application/json", b"[1, 2, 3]")
    page = admin.post(f"{ROOT}tool/{tool.pk}/try/", {"argument_status": "open"}).content.decode()
    assert "It worked" in page and f"GET {service.url}/orders?status=open" in page
    assert service.last.target == "/orders?status=open"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("path", "/a?b=1"),
        ("path", "/../b"),
        ("select", "a["),
        ("name", "no spaces"),
        ("query", "[1]"),
        ("query", '{"a": 1}'),
        ("headers", '{"Authorization": "x"}'),
        ("parameters", '{"type": "nonsense"}'),
        ("parameters", '{"type": "object"}'),
    ],
)
def test_an_action_with_a_mistake_says_so(admin: Client, shop: Connector, field: str, value: str) -> None:
    data = {
        "name": "a",
        "description": "A.",
        "method": "GET",
        "path": "/{x}",
        "query": "{}",
        "headers": "{}",
        "body": "",
        "select": "",
        "parameters": "",
        "effect_class": "read",
        "approval": "writes",
        "timeout": "1",
        "max_result_chars": "1000",
    }
    answer = admin.post(f"{ROOT}tool/add/?connector={shop.pk}", {**data, field: value})
    assert answer.status_code == 200 and answer.context["adminform"].form.errors[field]
    assert not Tool.objects.filter(connector=shop).exists()


def test_trying_a_tool_that_writes_needs_a_word(admin: Client, shop: Connector, service: Service) -> None:
    tool = make_tool(shop, effect_class="once", definition={"method": "DELETE", "path": "/orders/{id}"})
    admin.post(f"{ROOT}tool/{tool.pk}/try/", {"argument_id": "1"})
    assert service.requests == []
    admin.post(f"{ROOT}tool/{tool.pk}/try/", {"argument_id": "1", "confirmed": "on"})
    assert service.last.method == "DELETE"


def test_trying_is_done_as_oneself(admin: Client, shop: Connector, service: Service) -> None:
    tool = make_tool(shop)
    tool.groups.add(Group.objects.create(name="Sales"))
    assert admin.post(f"{ROOT}tool/{tool.pk}/try/", {"argument_id": "1"}).status_code == 302
    assert service.requests == []


def test_trying_masks_secrets_in_request_and_result(admin: Client, shop: Connector, service: Service) -> None:
    credentials.store(AuthScheme.objects.create(connector=shop), None, {"token": CANARY})
    service.reply = (200, "text/plain", f"you said {CANARY}".encode())
    page = admin.post(f"{ROOT}tool/{make_tool(shop).pk}/try/", {"argument_id": "1"}).content.decode()
    assert "Bearer •••" in page and "you said •••" in page and "canary" not in page


def test_checking_shows_the_exact_error(admin: Client, shop: Connector, service: Service) -> None:
    def check() -> str:
        return admin.post(f"{ROOT}connector/{shop.pk}/check/", follow=True).content.decode()

    assert "The server answers: HTTP 200" in check()
    Connector.objects.update(inner=False)
    assert "127.0.0.1 is not an address of the public internet" in check()
    assert admin.get(f"{ROOT}connector/{shop.pk}/check/").status_code == 302


def test_a_new_address_leaves_the_credentials_behind(admin: Client, shop: Connector, service: Service) -> None:
    scheme = AuthScheme.objects.create(connector=shop, per_user=True)
    credentials.store(scheme, None, {"token": CANARY})
    credentials.store(scheme, make_user("ada"), {"token": CANARY})
    data = {
        "name": "Shop",
        "timeout": "10",
        "enabled": "on",
        "inner": "on",
        "prefix": "shop",
        "headers": "{}",
        "_save": "1",
        "schemes-TOTAL_FORMS": "1",
        "schemes-INITIAL_FORMS": "1",
        "schemes-MIN_NUM_FORMS": "0",
        "schemes-MAX_NUM_FORMS": "9",
        "schemes-0-id": scheme.pk,
        "schemes-0-connector": shop.pk,
        "schemes-0-name": "default",
        "schemes-0-type": "bearer",
        "schemes-0-place": "header",
        "schemes-0-per_user": "on",
    }
    change = f"{ROOT}connector/{shop.pk}/change/"
    assert admin.post(change, {**data, "base_url": f"{service.url}/other"}).status_code == 302
    assert Credential.objects.count() == 2, "the same origin"
    page = admin.post(change, {**data, "base_url": "https://evil.example/api"}, follow=True).content.decode()
    assert "2 credentials were removed" in page
    assert not Credential.objects.exists()
    entered = {"base_url": "https://evil.example/api", "schemes-0-new_secret": "new-one"}
    page = admin.post(change, {**data, **entered}, follow=True).content.decode()
    assert credentials.read(Credential.objects.get()) == {"token": "new-one"}
    assert "new-one" not in page and "new-one" not in admin.get(change).content.decode()


@pytest.mark.parametrize("how", ["upload", "pasted", "source"])
def test_an_openapi_document_comes_in_three_ways(admin: Client, service: Service, how: str) -> None:
    from django.core.files.uploadedfile import SimpleUploadedFile

    text = json.dumps(
        {
            "openapi": "3.0.0",
            "servers": [{"url": f"{service.url}/v1"}],
            "paths": {"/pets": {"get": {"operationId": "list", "tags": ["pets"]}, "post": {"operationId": "create"}}},
            "components": {
                "securitySchemes": {
                    "key": {"type": "apiKey", "in": "header", "name": "K"},
                    "tls": {"type": "mutualTLS"},
                }
            },
        }
    )
    service.reply = (200, "application/json", text.encode())
    given = {
        "upload": SimpleUploadedFile("a.json", text.encode()),
        "pasted": text,
        "source": f"{service.url}/openapi.json",
    }
    answer = add(admin, "openapi", inner="on", **{how: given[how]})
    connector = Connector.objects.get(name="Shop")
    assert connector.settings["base_url"] == f"{service.url}/v1"
    assert [(s.name, s.type, s.parameter) for s in connector.schemes.all()] == [("key", "api_key", "K")]
    page = admin.get(answer["Location"]).content.decode()
    assert "GET /pets" in page and "may write: asks for approval" in page and "tls" in page
    keys = ["GET /pets", "POST /pets"]
    admin.post(answer["Location"], {"shown": keys, "wanted": keys})
    tools = {tool.name: (tool.effect_class, tool.asks_first) for tool in connector.tools.all()}
    assert tools == {"list": ("read", False), "create": ("once", True)}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "Give the document"),
        ({"pasted": "nonsense"}, "no OpenAPI document"),
        ({"pasted": '{"openapi": "3.0.0", "paths": {}}'}, "does not say where the service is"),
        ({"source": "http://169.254.169.254/x"}, "public internet"),
        ({"source": "file:///etc/passwd"}, "http:// or https://"),
    ],
)
def test_a_document_that_cannot_be_used_is_refused_in_words(admin: Client, values: Any, message: str) -> None:
    answer = add(admin, "openapi", **values)
    assert answer.status_code == 200 and message in answer.content.decode()
    assert not Connector.objects.filter(kind="openapi").exists()


def test_a_source_that_is_away_does_not_make_tools_look_gone(admin: Client, shop: Connector) -> None:
    connector = Connector.objects.create(kind="openapi", name="Pets", settings={"base_url": "https://pets.example"})
    make_tool(connector, "list_pets")
    page = admin.get(f"{ROOT}connector/{connector.pk}/tools/").content.decode()
    assert "could not be read" in page and "list_pets" in page and "is gone" not in page
    admin.post(f"{ROOT}connector/{connector.pk}/tools/", {"shown": ["list_pets"]})
    assert connector.tools.count() == 1


def test_secrets_do_not_show_in_rows(shop: Connector) -> None:
    credential = credentials.store(AuthScheme.objects.create(connector=shop), None, {"token": CANARY})
    assert "canary" not in f"{credential!r} {credential} {credential.__dict__} {list(Credential.objects.values())}"
    assert isinstance(Credential.objects.get().secret, SecretStr)
