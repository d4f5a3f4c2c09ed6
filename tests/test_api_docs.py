"""What `docs/api.md` and `examples/` show is done here, as it stands there, against the running product."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.product import ROOT, Person, Product

BLOCKS = re.findall(r"^```(\w+) run\n(.*?)^```", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE | re.DOTALL)
PROGRAMS = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}


def run(command: list[str], product: Product, person: Person, given: str = "") -> str:
    environment = {**os.environ, "AGENTAPP_URL": product.url, "AGENTAPP_KEY": person.key}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, input=given, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("language", "text"), BLOCKS, ids=[f"{n}-{language}" for n, (language, _) in enumerate(BLOCKS)]
)
def test_an_example_of_the_docs_works(product: Product, language: str, text: str) -> None:
    assert run([*PROGRAMS[language], text], product, product.person()).strip()


def test_there_are_examples() -> None:
    assert len(BLOCKS) == 8


def test_the_openai_client_streams_and_uses_its_own_tool(product: Product) -> None:
    def brain(request: dict[str, Any]) -> dict[str, Any]:
        last, names = request["messages"][-1], [t["function"]["name"] for t in request.get("tools") or ()]
        if last["role"] == "tool":
            return {"text": last["content"]}
        return (
            {"calls": [{"name": "weather", "arguments": {"town": "Rome"}}]}
            if names == ["weather"]
            else {"text": "Ask."}
        )

    product.model.brain = brain
    told = run([sys.executable, "examples/openai_client.py"], product, product.person())
    assert "Route: It is sunny in Rome, 24 °C." in told
    assert "Agent: Ask." in told


def test_the_bot_keeps_a_conversation(product: Product) -> None:
    person = product.person()
    told = run([sys.executable, "examples/bot.py"], product, person, "What is 12 * 12?\n\nHello\n")
    assert "[calculator …]" in told
    assert "144" in told
    assert "Hello! You wrote: Hello" in told
    count = "SELECT count(*) FROM conversations_conversation WHERE user_id = %s"
    assert product.sql(count, person.id) == [(1,)]


def test_a_batch_that_is_started_again_asks_nothing_twice(product: Product, tmp_path: Path) -> None:
    person, source, target = product.person(), tmp_path / "questions.txt", tmp_path / "answers.jsonl"
    source.write_text("What is 12 * 12?\nHello\nHello\n")
    command = [sys.executable, "examples/batch.py", str(source), str(target)]
    run(command, product, person)
    first = target.read_text()
    rows = [json.loads(line) for line in first.splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3]
    assert "144" in rows[0]["answer"]
    run(command, product, person)
    assert target.read_text() == first
    count = "SELECT count(*) FROM conversations_run WHERE user_id = %s"
    assert product.sql(count, person.id) == [(3,)]
