"""“My connections”: one's own accounts at other systems, by entered secrets and by OAuth 2."""

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.test import Client

from accounts.models import User
from tests.factories import make_user
from tests.tools_admin.connectors.recording import Service
from tests.tools_admin.test_connectors import call, make_tool
from tools_admin import credentials
from tools_admin.models import AuthScheme, Connector, Credential, Tool
from tools_admin.toolbox import engine_tools

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture
def ada() -> User:
    return make_user("ada")


@pytest.fixture
def browser(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def make_scheme(service: Service, **values: Any) -> AuthScheme:
    connector = Connector.objects.create(
        kind="http", name="Shop", inner=True, settings={"base_url": f"{service.url}/api"}
    )
    make_tool(connector)
    return AuthScheme.objects.create(connector=connector, per_user=True, **values)


def oauth(service: Service, kind: str = "oauth_code", **values: Any) -> AuthScheme:
    urls = {"authorize_url": "https://login.example/authorize", "token_url": f"{service.url}/token"}
    return make_scheme(service, type=kind, client_id="our client", scopes="read write", **urls, **values)


def tokens(**values: Any) -> tuple[int, str, bytes]:
    return 200, "application/json", json.dumps({"token_type": "Bearer", "expires_in": 3600, **values}).encode()


def begin(browser: Client, scheme: AuthScheme) -> dict[str, str]:
    page = browser.post(f"/connections/{scheme.pk}/")
    address = page.context["address"]
    assert address.startswith("https://login.example/authorize?")
    return dict(parse_qsl(urlsplit(address).query))


def test_an_entered_token_is_used_for_oneself_alone(browser: Client, ada: User, service: Service) -> None:
    scheme = make_scheme(service)
    assert "Not connected" in browser.get("/connections/").content.decode()
    page = browser.post(f"/connections/{scheme.pk}/", {f"s{scheme.pk}-secret": "tok-ada-1"}, follow=True)
    assert "Shop is connected" in page.content.decode() and "tok-ada-1" not in page.content.decode()
    call(Tool.objects.get(name="get_order"), ada, id="1")
    assert service.last.headers["authorization"] == "Bearer tok-ada-1"
    assert "My connections" in call(Tool.objects.get(name="get_order"), make_user("bob"), id="1").content
    browser.post(f"/connections/{scheme.pk}/remove/")
    assert not Credential.objects.exists()


def test_a_password_needs_its_user_name(browser: Client, service: Service) -> None:
    scheme = make_scheme(service, type="basic")
    page = browser.post(f"/connections/{scheme.pk}/", {f"s{scheme.pk}-secret": "hunter22"})
    assert page.status_code == 200 and "hunter22" not in page.content.decode()
    assert not Credential.objects.exists()
    both = {f"s{scheme.pk}-secret": "hunter22", f"s{scheme.pk}-username": "ada"}
    browser.post(f"/connections/{scheme.pk}/", both)
    assert credentials.read(Credential.objects.get()) == {"username": "ada", "password": "hunter22"}


def test_only_what_one_may_use_can_be_connected(browser: Client, service: Service) -> None:
    scheme = make_scheme(service)
    Tool.objects.get(name="get_order").groups.add(Group.objects.create(name="Sales"))
    assert "Nothing here needs" in browser.get("/connections/").content.decode()
    for method, path in (("post", ""), ("post", "remove/"), ("get", "callback/?code=x&state=y")):
        assert getattr(browser, method)(f"/connections/{scheme.pk}/{path}").status_code == 404
    AuthScheme.objects.update(per_user=False)
    Tool.objects.get(name="get_order").groups.clear()
    assert browser.post(f"/connections/{scheme.pk}/").status_code == 404


def test_the_list_costs_the_same_for_many(
    browser: Client, service: Service, django_assert_max_num_queries: Any
) -> None:
    make_scheme(service)
    with django_assert_max_num_queries(12) as few:
        browser.get("/connections/")
    for number in range(10):
        connector = Connector.objects.create(kind="http", name=f"C{number}", settings={"base_url": "https://x.example"})
        make_tool(connector, f"t{number}")
        AuthScheme.objects.create(connector=connector, per_user=True)
    with django_assert_max_num_queries(len(few)):
        assert browser.get("/connections/").content.decode().count("https://x.example") == 10


# OAuth 2 --------------------------------------------------------------------------------------------------------------


def test_a_person_agrees_and_comes_back(browser: Client, ada: User, service: Service) -> None:
    scheme = oauth(service)
    credentials.store(scheme, None, {"client_secret": "of the client/é"})
    asked = begin(browser, scheme)
    redirect_uri = f"http://testserver/connections/{scheme.pk}/callback/"
    assert (asked["response_type"], asked["client_id"], asked["scope"]) == ("code", "our client", "read write")
    assert (asked["redirect_uri"], asked["code_challenge_method"]) == (redirect_uri, "S256")
    service.reply = tokens(access_token="at-1", refresh_token="rt-1")
    page = browser.get(f"/connections/{scheme.pk}/callback/?code=c0de&state={asked['state']}", follow=True)
    assert "Shop is connected" in page.content.decode() and "at-1" not in page.content.decode()
    sent = parse_qs(service.last.body.decode())
    digest = hashlib.sha256(sent["code_verifier"][0].encode()).digest()
    assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
    assert (sent["code"], sent["redirect_uri"], sent["grant_type"]) == (
        ["c0de"],
        [redirect_uri],
        ["authorization_code"],
    )
    basic = base64.b64encode(b"our%20client:of%20the%20client%2F%C3%A9").decode()
    assert service.last.headers["authorization"] == f"Basic {basic}"
    call(Tool.objects.get(name="get_order"), ada, id="1")
    assert service.last.headers["authorization"] == "Bearer at-1"


def test_an_answer_that_was_not_asked_for_connects_nothing(browser: Client, service: Service) -> None:
    scheme = oauth(service)
    service.reply = tokens(access_token="attacker")
    back = f"/connections/{scheme.pk}/callback/"
    asked = begin(browser, scheme)
    other = Client()
    other.force_login(make_user("bob"))
    for who, query in (
        (other, f"?code=c&state={asked['state']}"),  # another person's browser
        (browser, "?code=c&state=gu%C3%A9ssed"),
        (browser, f"?code=c&state={asked['state']}"),  # used up by the guess
        (browser, "?code=c"),
    ):
        assert "was not begun here" in who.get(back + query, follow=True).content.decode()
    asked = begin(browser, scheme)
    page = browser.get(f"{back}?error=access_denied&error_description=<b>x&state={asked['state']}", follow=True)
    assert "was refused" in page.content.decode() and "<b>x" not in page.content.decode()
    asked = begin(browser, scheme)
    AuthScheme.objects.update(token_url="https://evil.example/token")
    page = browser.get(f"{back}?code=c&state={asked['state']}", follow=True)
    assert "was not begun here" in page.content.decode(), "the code is not taken to another server"
    assert not Credential.objects.filter(user__isnull=False).exists() and service.requests == []


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ((400, "application/json", b'{"error": "invalid_grant", "error_description": "too late"}'), "too late"),
        ((200, "text/html", b"<html>"), "HTTP 200"),
        ((200, "application/json", b"[]"), "HTTP 200"),
        (tokens(access_token="x", token_type="mac"), "cannot be used"),
        (tokens(access_token=5), "refused"),
    ],
)
def test_a_sign_in_that_fails_says_why(browser: Client, service: Service, reply: Any, why: str) -> None:
    scheme = oauth(service)
    asked = begin(browser, scheme)
    service.reply = reply
    page = browser.get(f"/connections/{scheme.pk}/callback/?code=c&state={asked['state']}", follow=True)
    assert "was not connected" in page.content.decode() and why in page.content.decode()
    assert not Credential.objects.exists()


def test_an_expired_token_is_renewed_and_kept(ada: User, service: Service) -> None:
    scheme = oauth(service)
    old = {"access_token": "at-old", "refresh_token": "rt-1", "expires_at": time.time() - 5}
    credentials.store(scheme, ada, old)
    tool = Tool.objects.get(name="get_order")
    service.reply = tokens(access_token="at-new")
    call(tool, ada, id="1")
    renewal, used = service.received
    assert parse_qs(renewal.body.decode()) == {
        "grant_type": ["refresh_token"], "refresh_token": ["rt-1"], "client_id": ["our client"]
    }  # fmt: skip
    assert used.headers["authorization"] == "Bearer at-new"
    kept = credentials.read(Credential.objects.get())
    assert (kept["access_token"], kept["refresh_token"]) == ("at-new", "rt-1")
    call(tool, ada, id="1")
    assert len(service.requests) == 3, "not renewed again"


def test_a_connection_that_cannot_be_renewed_says_what_to_do(ada: User, service: Service) -> None:
    scheme = oauth(service)
    credentials.store(scheme, ada, {"access_token": "at-old", "expires_at": time.time() - 5})
    assert "connect again" in call(Tool.objects.get(name="get_order"), ada, id="1").content
    assert service.requests == []


def test_a_sign_in_server_that_repeats_secrets_shows_them_to_nobody(ada: User, service: Service) -> None:
    scheme = oauth(service)
    credentials.store(scheme, None, {"client_secret": "s3cret-of-ours"})
    credentials.store(scheme, ada, {"access_token": "at-old", "refresh_token": "rt-canary", "expires_at": 0})
    told = {"error": "invalid_grant", "error_description": "x" * 270 + "no rt-canary for s3cret-of-ours, nor more"}
    service.reply = (400, "application/json", json.dumps(told).encode())
    answer = call(Tool.objects.get(name="get_order"), ada, id="1").content
    assert "was refused" in answer and "no •••" in answer
    assert "canary" not in answer and "s3cret" not in answer


def test_client_credentials_get_a_token_and_use_it_until_it_expires(ada: User, service: Service) -> None:
    scheme = oauth(service, "oauth_client")
    AuthScheme.objects.update(per_user=False)
    credentials.store(scheme, None, {"client_secret": "s3cret"})
    service.reply = tokens(access_token="at-1")
    tool = Tool.objects.get(name="get_order")
    for _ in range(2):
        call(tool, ada, id="1")
    assert [request.target for request in service.received] == ["/token", "/api/orders/1", "/api/orders/1"]
    assert parse_qs(service.received[0].body.decode())["grant_type"] == ["client_credentials"]


def test_calls_that_come_together_renew_once(ada: User, service: Service) -> None:
    scheme = oauth(service)
    credentials.store(scheme, ada, {"access_token": "old", "refresh_token": "rt-1", "expires_at": time.time() - 5})
    service.reply = tokens(access_token="at-new", refresh_token="rt-2")
    [tool] = engine_tools(Tool.objects.filter(name="get_order").select_related("connector"), ada)

    async def together() -> None:
        await asyncio.gather(*(tool.execute({"id": str(number)}) for number in range(5)))

    async_to_sync(together)()
    targets = [request.target for request in service.received]
    assert targets.count("/token") == 1 and len(targets) == 6
    assert credentials.read(Credential.objects.get())["refresh_token"] == "rt-2"
