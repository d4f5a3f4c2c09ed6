"""The middleware of the running server, which goes to a thread only for what waits."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.db import connections
from django.test import AsyncClient
from django.utils import timezone

from accounts.models import User
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def nothing_stays_open() -> AsyncIterator[None]:
    yield
    await sync_to_async(connections.close_all)()


@pytest.fixture
def ada() -> User:
    user = make_user(language="de", time_zone="Europe/Berlin")
    user.set_password("a long password")
    user.save()
    return user


async def _sign_in(client: AsyncClient, **more: Any) -> Any:
    return await client.post("/account/login/", {"login": "ada", "password": "a long password", **more})


async def test_a_session_is_kept_with_what_a_page_says_next(ada: User) -> None:
    client = AsyncClient()
    answer = await _sign_in(client)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert await Session.objects.filter(expire_date__gt=timezone.now()).acount() == 1
    assert "messages" in client.cookies


async def test_language_and_zone_are_the_signed_in_persons(ada: User) -> None:
    client = AsyncClient()
    await client.aforce_login(ada)
    page = await client.get("/account/")
    assert page["Content-Language"] == "de"
    assert (await AsyncClient().get("/account/login/"))["Content-Language"] == "en"


async def test_a_form_without_its_token_is_refused(ada: User) -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    assert (await _sign_in(client)).status_code == 403
    await client.get("/account/login/")
    token = client.cookies["csrftoken"].value
    assert (await _sign_in(client, csrfmiddlewaretoken=token)).status_code == 302


async def test_every_answer_has_its_headers() -> None:
    answer = await AsyncClient().get("/healthz", headers={"X-Request-ID": "mine"})
    wanted = {"X-Request-ID": "mine", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff"}
    assert {name: answer[name] for name in wanted} == wanted
    assert "default-src 'none'" in answer["Content-Security-Policy"]
