"""Real MCP servers, over stdio and Streamable HTTP."""

import asyncio
import subprocess

import pytest

from agentapp.engine import EffectClass
from tests.tools_admin.connectors.contract import check_contract
from tests.tools_admin.connectors.mcp.conftest import BIN, NODE_BIN, call, going_on, over_http
from tools_admin.connectors.base import Authorization, ConnectorError, ConnectorUnavailable, Setup, ToolError
from tools_admin.connectors.mcp.connector import McpConnector
from tools_admin.connectors.mcp.links import links
from tools_admin.connectors.person import Answer, Question, asking


@pytest.fixture(params=["stdio", "http"])
def both(request) -> McpConnector:
    return request.getfixturevalue("everything" if request.param == "stdio" else "everything_http")


async def test_time(time_server):
    assert "offers 2 tools" in await time_server.check()
    specs = {spec.name: spec for spec in await time_server.discover()}
    assert specs["get_current_time"].parameters["required"] == ["timezone"]
    result = await call(time_server, "get_current_time", timezone="Europe/Berlin")
    assert result.content.count("Europe/Berlin") == 1  # once, not as text and as structured content
    with pytest.raises(ToolError):
        await call(time_server, "get_current_time", timezone="Mars/Olympus")


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("hello")
    return str(tmp_path)


async def test_git(serve, repository):
    connector = serve(str(BIN / "mcp-server-git"), "--repository", repository)
    specs = {spec.name: spec for spec in await connector.discover()}
    assert len(specs) == 12
    assert "new.txt" in (await call(connector, "git_status", repo_path=repository)).content
    with pytest.raises(ToolError):
        await call(connector, "git_status", repo_path="/")


async def test_filesystem(serve, tmp_path):
    (tmp_path / "hello.txt").write_text("Hello there")
    connector = serve(str(NODE_BIN / "mcp-server-filesystem"), str(tmp_path))
    specs = {spec.name: spec for spec in await connector.discover()}
    assert specs["read_text_file"].effect_class is EffectClass.READ
    assert specs["write_file"].effect_class in (EffectClass.IDEMPOTENT, EffectClass.ONCE)
    assert "read_resource" not in specs  # it has no resources
    assert "Hello there" in (await call(connector, "read_text_file", path=str(tmp_path / "hello.txt"))).content
    with pytest.raises(ToolError, match="Access denied"):
        await call(connector, "read_text_file", path="/etc/passwd")


async def test_servers_of_the_standard_streams_on_the_web(reach, repository, tmp_path):
    with over_http(str(BIN / "mcp-server-time"), "--local-timezone", "UTC") as url:
        result = await call(reach(url), "get_current_time", timezone="Europe/Berlin")
        assert result.content.count("Europe/Berlin") == 1
    with over_http(str(BIN / "mcp-server-git"), "--repository", repository) as url:
        assert "new.txt" in (await call(reach(url), "git_status", repo_path=repository)).content
    (tmp_path / "hello.txt").write_text("Hello there")
    with over_http(str(NODE_BIN / "mcp-server-filesystem"), str(tmp_path)) as url:
        assert "Hello there" in (await call(reach(url), "read_text_file", path=str(tmp_path / "hello.txt"))).content
        with pytest.raises(ToolError, match="Access denied"):
            await call(reach(url), "read_text_file", path="/etc/passwd")


async def test_everything(both):
    assert (await call(both, "echo", message="hi")).content == "Echo: hi"
    structured = await call(both, "get-structured-content", location="New York")
    assert structured.content.count("Cloudy") == 1
    with pytest.raises(ToolError, match="Invalid arguments for tool echo"):
        await call(both, "echo")
    with pytest.raises(ToolError, match="does not offer nope any more"):
        await call(both, "nope")
    names = [spec.name for spec in await both.discover()]
    assert "simulate-research-query" not in names  # it only runs as a task


async def test_images_and_resources_become_files_and_text(both):
    image = await call(both, "get-tiny-image")
    assert [(file.filename, file.content_type) for file in image.artifacts] == [("image-1.png", "image/png")]
    assert image.artifacts[0].data.startswith(b"\x89PNG")
    assert "[image-1.png: image/png, shown to the user]" in image.content
    reference = await call(both, "get-resource-reference", resourceType="Blob", resourceId=1)
    assert "Resource 1: This is a base64 blob" in reference.content  # a blob that calls itself text
    links = await call(both, "get-resource-links", count=2)
    assert "demo://resource/dynamic/text/2" in links.content
    listed = (await call(both, "resources/list")).content
    assert listed.count("demo://") >= 5
    assert "demo://resource/dynamic/text/{resourceId}" in listed
    assert "Resource 2" in (await call(both, "resources/read", uri="demo://resource/dynamic/text/2")).content
    with pytest.raises(ToolError, match="The server says"):
        await call(both, "resources/read", uri="demo://nothing")


async def test_a_question_of_the_server_reaches_the_person_of_the_call(both):
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return Answer("accept", {"name": "Ada", "check": True})

    asking.set(ask)
    result = await call(both, "trigger-elicitation-request")
    assert "Name: Ada" in result.content
    assert "name" in asked[0].schema["required"]
    # What the person left out is what the server proposed.
    assert "Favorite Integer: 42" in result.content or '"integer": 42' in result.content

    asking.set(lambda question: _answer(Answer("decline")))
    assert "declined" in (await call(both, "trigger-elicitation-request")).content.lower()


async def _answer(answer: Answer) -> Answer:
    return answer


async def test_where_nobody_can_be_asked_the_server_is_told_so(both):
    with pytest.raises(ToolError, match="Nobody can be asked here"):
        await call(both, "trigger-elicitation-request")


async def test_pages_to_visit_must_be_encrypted_ones(both):
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return Answer("accept")

    asking.set(ask)
    await call(both, "trigger-url-elicitation", url="https://example.com/agree")
    assert [question.url for question in asked] == ["https://example.com/agree"]
    with pytest.raises(ToolError, match="https"):
        await call(both, "trigger-url-elicitation", url="http://example.com/agree")
    assert len(asked) == 1


async def test_questions_are_not_put_to_whoever_happens_to_be_there(everything_http):
    """Two calls share the connection, and the server does not say which of them wants to know."""
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return Answer("accept", {"name": "Ada"})

    async def innocent() -> None:
        asking.set(ask)
        await call(everything_http, "trigger-long-running-operation", duration=60, steps=60)

    await everything_http.check()
    waiting = asyncio.create_task(innocent())
    try:
        await going_on(everything_http, waiting)
        with pytest.raises(ToolError, match=r"Several calls are going on|Nobody can be asked"):
            await call(everything_http, "trigger-elicitation-request")
    finally:
        waiting.cancel()
    assert asked == []


async def test_stopping_a_call_leaves_the_connection_usable(both):
    await both.check()
    link = await both._link()
    long = asyncio.create_task(call(both, "trigger-long-running-operation", duration=60, steps=60))
    await going_on(both, long)
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    assert (await call(both, "echo", message="again")).content == "Echo: again"
    assert await both._link() is link


async def test_the_child_gets_no_secret_of_ours(everything, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "canary-of-the-installation")
    monkeypatch.setenv("OPENAI_API_KEY", "canary-too")
    environment = (await call(everything, "get-env")).content
    assert "PATH" in environment
    assert "canary" not in environment
    assert "DATABASE_URL" not in environment


async def test_connections_are_shared_and_people_who_sign_in_have_their_own(everything_url):
    async def authorize(url, wanted=None):
        return Authorization(headers={"Authorization": "Bearer t"}, secrets=("t",))

    hosts = frozenset({"127.0.0.1"})
    settings = {"base_url": everything_url}
    shared = [await McpConnector(Setup(settings, hosts, id=1, user_id=user))._link() for user in (1, 2)]
    own = [
        await McpConnector(Setup(settings, hosts, id=1, user_id=user, authorize=authorize))._link() for user in (1, 2)
    ]
    assert shared[0] is shared[1]
    assert own[0] is not own[1]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/mcp", "not an address of the public internet"),
        ("http://169.254.169.254/mcp", "not an address of the public internet"),
    ],
)
async def test_addresses_obey_the_rules_for_what_leaves_the_process(url, why):
    with pytest.raises(ConnectorError, match=why):
        await McpConnector(Setup({"base_url": url})).check()


async def test_what_cannot_be_reached_is_said_in_one_line(serve, everything_url):
    hosts = frozenset({"127.0.0.1"})
    with pytest.raises(ConnectorUnavailable, match=r"^[^\n]{10,200}$"):
        await McpConnector(Setup({"base_url": "http://127.0.0.1:9/mcp"}, hosts)).check()
    with pytest.raises(ConnectorUnavailable, match="The server says: Not Found"):
        await McpConnector(Setup({"base_url": everything_url + "/nothing"}, hosts, id=8)).check()
    with pytest.raises(ConnectorUnavailable, match="no-such-command: No such file"):
        await serve("/usr/bin/no-such-command").check()


def test_commands_come_from_the_operator_alone(settings):
    settings.MCP_COMMANDS = {}
    for chosen in ({"command": "server"}, {"command": "bash"}, {}, {"command": "x", "base_url": "https://example.org"}):
        with pytest.raises(ConnectorError, match="settings are wrong"):
            McpConnector(Setup(chosen))
    with pytest.raises(ConnectorError, match="settings are wrong"):
        McpConnector(Setup({"base_url": "https://example.org", "args": ["-c", "id"]}))


async def test_the_contract_of_connectors(time_server):
    await check_contract(time_server)


async def test_a_living_connection_signs_in_with_the_newest_credential(everything_url):
    used: list[str] = []

    def signed_by(token: str) -> Setup:
        async def authorize(url, wanted=None):
            used.append(token)
            return Authorization(headers={"Authorization": f"Bearer {token}"}, secrets=(token,))

        return Setup({"base_url": everything_url}, frozenset({"127.0.0.1"}), id=9, user_id=1, authorize=authorize)

    await McpConnector(signed_by("old")).check()
    used.clear()
    await call(McpConnector(signed_by("new")), "echo", message="hi")
    assert set(used) == {"new"}
    await links().close_all()
