"""Tool calls that leak into text."""

import json
from pathlib import Path

import pytest

from agentapp.engine.leaked_calls import MarkupHold, markup_position, read_leaked_calls

FOLDER = Path(__file__).parents[3] / "shared/data/model_text"
# Formats without markup of their own are not read: what looks like prose or Python stays text.
NOT_READ = {"own_calls_with_semicolons", "own_pythonic_with_tokens", "own_pythonic_two"}


def recorded_cases():
    for path in sorted(FOLDER.glob("*.json")):
        data = json.loads(path.read_text())
        yield from data.get("cases", [data])


CASES = {case["id"]: case for case in recorded_cases() if case["expected_kind"] == "tool_calls"}


def definitions(*names, **types):
    properties = {name: {"type": kind} for name, kind in types.items()}
    schema = {"type": "object", "properties": properties}
    return [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]


@pytest.mark.skipif(not CASES, reason="the recorded model texts are not here")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_recorded_leaks_are_read(case):
    wanted = [(call["name"], call["arguments"]) for call in case["expected"]["tool_calls"]]
    tools = definitions(*(name for name, _ in wanted), size="object", pieces="integer")
    text = case["text"].rpartition("</think>")[2]
    found = read_leaked_calls(text, tools)
    if case["id"] in NOT_READ:
        assert found is None
    elif "unparseable" in case["also_acceptable"]:
        assert found is not None
        assert found[1] == [] or found[1] == wanted
    else:
        assert found is not None
        assert found[1] == wanted
        assert markup_position(found[0]) is None


DSML = (
    '<｜DSML｜function_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="n" string="false">3</｜DSML｜parameter>'
    "</｜DSML｜invoke></｜DSML｜function_calls>"
)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (DSML, [("f", {"n": 3})]),
        ('Wait. <tool_call>{"name": "f", "arguments": {}}</tool_call>', [("f", {})]),
        ("<function=f>{}</function>\n<function=f>{}</function>", [("f", {}), ("f", {})]),
        ('<tool_call>{"name": "f", "argu', []),
    ],
)
def test_blocks_at_the_end_are_calls(text, calls):
    found = read_leaked_calls(text, definitions("f", n="integer"))
    assert found is not None
    assert found[1] == calls


@pytest.mark.parametrize(
    "text",
    [
        f"The block `{DSML}` is DSML.",
        f"```\n{DSML}\n```",
        'It writes <tool_call>{"name": "f", "arguments": {}}</tool_call> and then waits for the result.',
        '{"name": "other", "arguments": {}}',
        '{"name": "f", "arguments": {}, "price": 3}',
        "Plain text with a < b and [1].",
    ],
)
def test_quoted_markup_and_prose_are_not_run(text):
    assert read_leaked_calls(text, definitions("f")) is None


@pytest.mark.parametrize("size", [1, 3, 7])
def test_markup_is_never_let_through_while_streaming(size):
    for text in (f"One moment.{DSML}", '{"name": "f", "arguments": {}}', "[TOOL_CALLS]f{}"):
        hold = MarkupHold()
        out = "".join(hold.feed(text[i : i + size]) for i in range(0, len(text), size))
        assert out == ("One moment." if text.startswith("One") else "")


@pytest.mark.parametrize("size", [1, 3, 50])
def test_ordinary_text_flows_at_once(size):
    text = "a < b, see [1] and `<tool_call>` twice"
    hold = MarkupHold()
    out = "".join(hold.feed(text[i : i + size]) for i in range(0, len(text), size))
    assert out == text
