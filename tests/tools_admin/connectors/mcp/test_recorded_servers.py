"""What real servers were heard to say, said again: nothing of it is lost, doubled, or taken for something else."""

import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from agentapp.engine import Tool, ToolResult
from tools_admin.connectors.base import ToolError
from tools_admin.connectors.person import Answer, Progress, Question, asking, telling

TRANSCRIPTS = Path(__file__).parents[5] / "shared" / "data" / "mcp" / "transcripts"
REPLAY = Path(__file__).with_name("replay_server.py")
RECORDED = {path: text for path in sorted(TRANSCRIPTS.glob("*.json")) if '"tools"' in (text := path.read_text())}
pytestmark = pytest.mark.skipif(not RECORDED, reason="the recorded exchanges are not here")


@pytest.mark.parametrize("path", RECORDED, ids=[path.stem for path in RECORDED])
async def test_what_a_server_said(serve: Any, path: Path) -> None:
    told = json.loads(RECORDED[path])
    connector = serve(sys.executable, str(REPLAY), str(path))
    specs = {spec.key: spec for spec in await connector.discover()}
    shown = [t["name"] for t in told["tools"] if t.get("execution", {}).get("taskSupport") != "required"]
    assert [key for key in specs if "/" not in key] == shown
    for spec in specs.values():
        tool = Tool(spec.name, spec.description, spec.parameters, dict)
        assert "cannot be used" not in (tool.argument_error({}) or "")
    for call in told["calls"]:
        if call["tool"] in specs and call.get("error", [""])[0] != "MCPError":
            await _check(connector, specs[call["tool"]], call)


async def _check(connector: Any, spec: Any, call: dict[str, Any]) -> None:
    heard: list[Progress] = []
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return Answer("accept", {"name": "Ada", "email": "ada@example.org"})

    asking.set(ask)
    telling.set(lambda: heard.append)
    try:
        result = await connector.call(spec, call["args"] or {})
    except ToolError as error:
        assert call["result"]["isError"]
        assert len(str(error)) < 700 and "pydantic.dev" not in str(error)
        return
    assert not call["result"].get("isError")
    assert len(heard) == len(call["progress"])
    assert len(asked) == sum(event[0] == "elicitation" for event in call["events"])
    _same(result, call["result"])


def _same(result: ToolResult, said: dict[str, Any]) -> None:
    for block in said["content"]:
        if block["type"] == "text":
            assert block["text"] in result.content
        elif block["type"] == "resource_link":
            assert block["uri"] in result.content
        elif block["type"] == "image":
            assert (
                any(_is_beginning(file.data, block["data"]) for file in result.artifacts) or "broken" in result.content
            )
    structured = said.get("structuredContent")
    if structured:
        text = json.dumps(structured, ensure_ascii=False, sort_keys=True)
        found = [_sorted(piece) for piece in result.content.split("\n")] + [_sorted(result.content)]
        whole = [block["text"] for block in said["content"] if block["type"] == "text"]
        plain = isinstance(structured, dict) and structured.get("content", structured.get("result")) in whole
        cut = any("…" in piece or len(piece) >= 700 for piece in whole)
        assert text in found or plain or cut, "in one form or the other"
        assert found.count(text) <= 2  # the line and the whole, where it has but one line


def _sorted(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True)
    except ValueError:
        return text


def _is_beginning(data: bytes, encoded: str) -> bool:
    whole = re.match(r"[A-Za-z0-9+/]*", encoded)
    kept = whole.group()[: len(whole.group()) // 4 * 4] if whole else ""
    return data.startswith(base64.b64decode(kept))
