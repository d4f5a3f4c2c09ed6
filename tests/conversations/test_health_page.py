"""The admin's health page names what is wrong."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from pydantic import SecretStr

from agentapp import valkey
from tests.factories import make_user
from tools_admin.models import LanguageModel, Provider

PAGE = "/admin/health/"


@pytest.fixture
def page(client: Client, db: None) -> Client:
    client.force_login(make_user("ada", is_superuser=True, is_staff=True))
    return client


@pytest.fixture
def without_redis(settings: Any) -> Iterator[None]:
    kept = valkey._sync[:]
    valkey._sync.clear()
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    yield
    valkey._sync[:] = kept


def findings(page: Client) -> dict[str, tuple[str, str]]:
    answer = page.get(PAGE)
    assert answer.status_code == 200
    return {finding.part: (finding.state, finding.text) for finding in answer.context["findings"]}


def provider(url: str, key: str = "") -> Provider:
    made = Provider.objects.create(name="Acme", base_url=url, api_key=SecretStr(key))
    LanguageModel.objects.create(provider=made, name="m")
    return made


class Endpoint(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.headers["Authorization"] == "Bearer good" else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Silence."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_a_key_that_is_refused_is_said(page: Client, endpoint: str) -> None:
    provider(endpoint, "bad")
    assert findings(page)["Model endpoint Acme"] == ("bad", "HTTP 401 Unauthorized")


def test_what_is_well_is_said(page: Client, endpoint: str) -> None:
    provider(endpoint, "good")
    found = findings(page)
    assert found["Database"][0] == found["Migrations"][0] == found["Valkey"][0] == "ok"
    assert found["Model endpoint Acme"][0] == "ok"


def test_no_worker_is_said(page: Client) -> None:
    valkey.sync_client().delete("workers")
    assert findings(page)["Workers"][0] == "bad"


def test_an_endpoint_that_is_away_is_said_with_its_error(page: Client) -> None:
    provider("http://127.0.0.1:1/v1", "canary-key")
    state, text = findings(page)["Model endpoint Acme"]
    assert state == "bad" and "127.0.0.1" in text
    assert "canary-key" not in page.get(PAGE).content.decode()


def test_a_key_that_cannot_be_read_is_said(page: Client) -> None:
    made = provider("https://x.example/v1", "secret")
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("UPDATE tools_admin_provider SET api_key = 'gAAAAAnonsense' WHERE id = %s", [made.pk])
    assert "ENCRYPTION_KEYS" in findings(page)["Model endpoint Acme"][1]


def test_the_broker_away_is_said(page: Client, without_redis: None) -> None:
    found = findings(page)
    assert found["Valkey"][0] == "bad" and found["Workers"][0] == "bad"


def test_mail_that_goes_to_the_log_is_said(page: Client, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert findings(page)["Mail"][0] == "warn"


def test_another_address_than_the_public_one_is_said(page: Client, settings: Any) -> None:
    settings.PUBLIC_URL = "https://chat.example.org"
    assert "chat.example.org" in findings(page)["Address"][1]


def test_only_whoever_configures_sees_it(client: Client, db: None) -> None:
    auditor = make_user("auditor")
    auditor.groups.add(Group.objects.get(name="Auditors"))
    client.force_login(auditor)
    assert client.get(PAGE).status_code == 403
