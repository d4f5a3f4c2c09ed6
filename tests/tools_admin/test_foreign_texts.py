"""What systems say of themselves is plain text in every page of the admin, and nothing in a setting is expanded."""

from collections.abc import Iterator

import pytest
from django.test import Client

from tests.factories import make_user
from tests.tools_admin.connectors.mcp.web_server import McpOnTheWeb
from tests.tools_admin.connectors.recording import Service
from tests.tools_admin.test_connectors import call
from tools_admin.models import Agent, Connector, Tool

pytestmark = pytest.mark.django_db(transaction=True)

HTML = "\"><img src=x onerror=alert(1)><script>alert(1)</script>{{ 7|add:'1' }}"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    return client


@pytest.fixture
def server() -> Iterator[McpOnTheWeb]:
    with McpOnTheWeb() as running:
        yield running


def test_names_descriptions_schemas_and_errors_are_text(admin: Client, server: McpOnTheWeb) -> None:
    connector = Connector.objects.create(
        kind="mcp", name=HTML[:60], inner=True, settings={"base_url": server.address}, last_error=HTML
    )
    properties = {HTML: {"type": "string", "title": HTML, "description": HTML}}
    server.tools["echo"] = {
        "name": f"echo{HTML}",
        "description": HTML * 5,
        "inputSchema": {"type": "object", "properties": properties},
    }
    tools = f"/admin/tools_admin/connector/{connector.pk}/tools/"
    admin.post(tools, {"shown": [f"echo{HTML}"], "wanted": [f"echo{HTML}"]})
    tool = connector.tools.get()
    Agent.objects.create(name=HTML).tools.add(tool)
    server.tools["echo"]["description"] = HTML * 6
    pages = [tools, f"/admin/tools_admin/connector/{connector.pk}/change/", "/admin/tools_admin/connector/"]
    pages += [f"/admin/tools_admin/tool/{tool.pk}/{page}/" for page in ("change", "try", "history")]
    pages += ["/admin/tools_admin/tool/", "/admin/tools_admin/agent/", "/connections/", "/"]
    texts = {page: admin.get(page).content.decode() for page in pages}
    server.protected = True
    checked = admin.post(f"/admin/tools_admin/connector/{connector.pk}/check/", follow=True)
    texts["check"] = checked.content.decode()
    shown = [page for page, text in texts.items() if "&lt;img src=x" in text]
    assert len(shown) >= 6, "the walk sees what it is about"
    for page, text in texts.items():
        assert "<img src=x" not in text and "<script>alert(1)" not in text, page


def test_nothing_in_a_setting_or_argument_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "canary-of-the-environment")
    with Service() as service:
        shop = Connector.objects.create(
            kind="http", name="Shop", inner=True, settings={"base_url": f"{service.url}/$SECRET_OF_OURS"}
        )
        definition = {
            "method": "POST",
            "path": "/{id}",
            "headers": {"X-Key": "$SECRET_OF_OURS %(SECRET_OF_OURS)s", "X-Other": "${SECRET_OF_OURS}"},
            "body": {"key": "{{env.SECRET_OF_OURS}} $SECRET_OF_OURS", "other": "{SECRET_OF_OURS}"},
        }
        parameters = {"type": "object", "properties": {"id": {"type": "string"}}}
        tool = Tool.objects.create(
            connector=shop, key="t", name="t", description="x", definition=definition, parameters=parameters
        )
        call(tool, make_user("ada"), id="$SECRET_OF_OURS")
        sent = f"{service.last.target} {service.last.headers} {service.last.body!r}"
    assert "canary" not in sent
    assert service.last.headers["x-key"] == "$SECRET_OF_OURS %(SECRET_OF_OURS)s"
    assert service.last.body == b'{"key": "{{env.SECRET_OF_OURS}} $SECRET_OF_OURS"}'
