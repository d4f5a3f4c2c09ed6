"""Servers that do not behave. Whatever they do, a call ends, with words; and the next one works."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.product import eventually
from tests.tools_admin.connectors.mcp.conftest import RUDE, call
from tools_admin.connectors.base import ConnectorError, ConnectorUnavailable, ToolChanged, ToolError
from tools_admin.connectors.mcp import link as link_module
from tools_admin.connectors.mcp import stdio


@pytest.fixture
def rude(serve):
    return lambda behaviour: serve(*RUDE, behaviour)


async def pid_of(connector) -> int:
    return int((await connector.check()).split("rude ")[1].split(" ")[0])


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_noise_is_passed_over(rude):
    assert (await call(rude("noise"), "look")).content == "seen"


async def test_a_silent_server_is_given_up(rude, monkeypatch):
    monkeypatch.setattr(link_module, "CONNECT_SECONDS", 0.3)
    with pytest.raises(ConnectorUnavailable, match="did not answer within"):
        await rude("silent").check()


async def test_the_last_words_of_a_server_that_leaves_are_told(rude):
    with pytest.raises(ConnectorUnavailable, match="no licence found"):
        await rude("leaves").check()


async def test_a_call_without_an_answer_ends_with_the_tools_time(rude):
    connector = rude("never_answers_calls")
    spec = (await connector.discover())[0]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await connector.call(spec, {})
    assert "rude" in await connector.check()


async def test_answers_to_questions_nobody_asked_are_ignored(rude):
    assert (await call(rude("wrong_ids"), "look")).content == "seen"


async def test_a_server_that_dies_is_started_anew(rude):
    connector = rude("dies_in_calls")
    before = await pid_of(connector)
    with pytest.raises(ConnectorUnavailable, match=r"ended the connection.*out of cheese"):
        await call(connector, "look")
    assert await pid_of(connector) != before


async def test_a_server_that_keeps_dying_is_left_alone_for_a_while(rude, monkeypatch):
    monkeypatch.setattr(link_module, "PAUSE_SECONDS", 1_000)
    monkeypatch.setattr(link_module, "LONGEST_PAUSE_SECONDS", 1_500)
    connector = rude("dies_in_calls")
    spec = (await connector.discover())[0]
    for _ in range(2):
        with pytest.raises(ConnectorUnavailable, match="ended the connection"):
            await connector.call(spec, {})
    with pytest.raises(ConnectorUnavailable, match=r"broke 2 times; it is tried again in \d+ s.*out of cheese"):
        await connector.call(spec, {})
    link = await connector._link()
    link._not_before = 0.0  # time passes
    with pytest.raises(ConnectorUnavailable, match="ended the connection"):
        await connector.call(spec, {})
    assert 1_400 < link._not_before - asyncio.get_running_loop().time() <= 1_500, "each pause is longer, up to a limit"


async def test_a_stopped_call_is_cancelled_at_the_server(rude, tmp_path):
    record, called = tmp_path / "cancelled", tmp_path / "cancelled.called"
    connector = rude(f"never_answers_calls:{record}")
    spec = (await connector.discover())[0]
    going = asyncio.create_task(connector.call(spec, {}))
    await asyncio.to_thread(eventually, called.exists, "the call has arrived")
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going
    await asyncio.to_thread(eventually, record.exists, "the server hears that the call was cancelled")
    assert record.read_text() == called.read_text(), "the very call"


async def test_an_endless_line_ends_the_connection(rude, monkeypatch):
    monkeypatch.setattr(stdio, "MAX_LINE_BYTES", 1_000_000)
    connector = rude("endless_line")
    before = await pid_of(connector)
    with pytest.raises(ConnectorUnavailable, match="ended the connection"):
        await call(connector, "look")
    assert await pid_of(connector) != before
    await asyncio.to_thread(eventually, lambda: gone(before), "the server is gone")


async def test_a_long_list_without_an_end_is_refused(rude):
    with pytest.raises(ConnectorError, match="no end"):
        await rude("endless_list").discover()


async def test_tools_with_broken_schemas_are_left_out(rude):
    assert [spec.name for spec in await rude("broken_schemas").discover()] == ["look"]
    with pytest.raises(ToolError, match="not what it promised"):
        await rude("no_schemas").discover()


async def test_an_answer_that_is_none_is_told(rude):
    with pytest.raises(ToolError, match=r"not what it promised|The server says"):
        await call(rude("no_result"), "look")


async def test_a_huge_answer_is_cut_by_the_tools_limit(rude):
    connector = rude("huge")
    spec = (await connector.discover())[0]
    assert len((await connector.call(spec, {})).content) == 5_000_000  # the engine cuts it to the tool's limit


async def test_a_reading_tool_that_says_that_it_has_turned_into_a_writing_one_is_not_called_again(rude):
    connector = rude("turns_writing")
    spec = (await connector.discover())[0]
    assert (await connector.call(spec, {})).content == "seen"
    with pytest.raises(ToolChanged, match=r"describes look differently"):
        await connector.call(spec, {})
    assert spec.description == "Looks."  # what models read is what the administrator saw


async def test_what_a_server_started_goes_with_it(rude):
    connector = rude("has_children")
    server = await pid_of(connector)
    children = _children_of(server)
    assert children
    await (await connector._link()).closed()
    for pid in (server, *children):
        await asyncio.to_thread(eventually, lambda pid=pid: gone(pid), "everything is gone")


_WORKER = """
import asyncio, os, sys
sys.path.insert(0, os.getcwd())
from django.conf import settings
settings.configure(MCP_COMMANDS={"server": sys.argv[1:]})
from tools_admin.connectors.base import Setup
from tools_admin.connectors.mcp.connector import McpConnector
async def main():
    print(await McpConnector(Setup({"command": "server"})).check(), flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


def test_a_server_dies_with_its_worker():
    worker = subprocess.Popen([sys.executable, "-c", _WORKER, *RUDE, "polite"], stdout=subprocess.PIPE, text=True)
    try:
        pid = int(worker.stdout.readline().split("rude ")[1].split(" ")[0])
        assert not gone(pid)
        os.kill(worker.pid, signal.SIGKILL)
        eventually(lambda: gone(pid), "the server is gone")
    finally:
        worker.kill()
        worker.communicate()


def _children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
