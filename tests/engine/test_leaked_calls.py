"""Tool calls that leak into text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentapp.engine.leaked_calls import MarkupHold, markup_position, read_leaked_calls
from agentapp.engine.spoken_calls import read_python_calls, read_react_text

from .cases import cases_of

CASES = {name: case for name, case in cases_of("model_text").items() if case["expected_kind"] == "tool_calls"}
REACT = {name: case for name, case in cases_of("model_text").items() if case["expected_kind"] == "react"}


def definitions(*names, **types):
    properties = {name: {"type": kind} for name, kind in types.items()}
    schema = {"type": "object", "properties": properties}
    return [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_recorded_leaks_are_read(case):  # E-96
    wanted = [(call["name"], call["arguments"]) for call in case["expected"]["tool_calls"]]
    tools = definitions(*(name for name, _ in wanted), size="object", pieces="integer")
    text = case["text"].rpartition("</think>")[2]
    found = read_leaked_calls(text, tools)
    if "unparseable" in case["also_acceptable"]:
        assert found is not None
        assert found[1] == [] or found[1] == wanted
    else:
        assert found is not None
        assert found[1] == wanted
        assert markup_position(found[0]) is None


@pytest.mark.parametrize("case", REACT.values(), ids=REACT)
def test_the_lines_of_react_prompts_are_read(case):  # E-24: what stands behind the first action is made up
    found = read_react_text(case["text"])
    assert found is not None
    assert {"action": found.action, "action_input": found.action_input} in [case["expected"], *case["also_acceptable"]]


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
        ("[f(n=3), f(n=-4)]", [("f", {"n": 3}), ("f", {"n": -4})]),
        ("Then <|python_start|>[f(n=3)]<|python_end|> ends.", [("f", {"n": 3})]),
        ('<|python_tag|>{"name": "f", "parameters": {"n": 3}}<|eom_id|>', [("f", {"n": 3})]),
        ("<|python_tag|>import os", []),
        ('Twice: {"name": "f", "arguments": {}}; {"name": "f", "arguments": {"n": 1}}.', [("f", {}), ("f", {"n": 1})]),
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
        "[other(n=3)]",
        "[f(3)]",
        "[f(n=g())]",
        "[f(**n)]",
        "[f](n)",
        "[f(n={1})]",
        '{"name": "f", "arguments": {}}; and more',
        'Say {"name": "f", "arguments": {}} to call it; it is easy.',
        '{"name": "f", "arguments": {}}; {"name": "other", "arguments": {}}',
    ],
)
def test_quoted_markup_and_prose_are_not_run(text):  # E-96, C-22
    assert read_leaked_calls(text, definitions("f")) is None


@pytest.mark.parametrize("size", [1, 3, 7])
def test_markup_is_never_let_through_while_streaming(size):
    for text in (
        f"One moment.{DSML}",
        'One moment.{"name": "f"',
        "[TOOL_CALLS]f{}",
        "[f(n=3)]",
        "{}",
        "<|python_tag|>x",
    ):
        hold = MarkupHold()
        out = "".join(hold.feed(text[i : i + size]) for i in range(0, len(text), size))
        assert out == ("One moment." if text.startswith("One") else "")


@pytest.mark.parametrize("size", [1, 3, 50])
def test_ordinary_text_flows_at_once(size):
    for text in ("a < b, see [1] and `<tool_call>` twice, {x}", "[A title](of a page) and more"):
        hold = MarkupHold()
        out = "".join(hold.feed(text[i : i + size]) for i in range(0, len(text), size))
        assert out == text
        assert hold.released == len(text)


@given(st.lists(st.text(alphabet='<|[]{}"name_():tool_call`\n ', max_size=8), max_size=12))
def test_what_was_let_through_is_the_beginning_of_the_text(pieces):
    hold = MarkupHold()
    out = "".join(map(hold.feed, pieces))
    text = "".join(pieces)
    assert text.startswith(out)
    assert hold.released == len(out)
    assert markup_position(out) is None


@given(st.text(alphabet="[]{}()f=,'\"*:1 \n<tool_call>|", max_size=80))
def test_no_text_makes_a_reader_raise(text):
    read_leaked_calls(text, definitions("f"))
    read_react_text(f"Action: f\nAction Input: {text}")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES))
def test_any_literal_survives_a_python_call(arguments):
    text = f"[f({', '.join(f'{name}={value!r}' for name, value in arguments.items())})]"
    assert read_python_calls(text, {"f"}) == [("f", arguments)]


def test_huge_garbage_is_refused_quickly():
    assert read_python_calls("[" * 200_000, {"f"}) is None
    assert read_python_calls("[" * 5_000, {"f"}) is None


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("Thought: I know.\nFinal Answer: 42", "I know.", "42"),
        ("```\nFinal Answer: two\nlines\n```", "", "two\nlines"),
    ],
)
def test_a_final_answer_line_is_an_answer(text, thought, answer):
    found = read_react_text(text)
    assert found is not None
    assert (found.action, found.thought, found.answer) == (None, thought, answer)


def test_an_action_whose_input_is_no_object_keeps_its_text():
    found = read_react_text("Action: `f`\nAction Input: half past two\nObservation: x")
    assert found is not None
    assert (found.action, found.action_input, found.raw_input) == ("f", None, "half past two")
    assert read_react_text("Take Action: now") is None
    assert read_react_text("Final Answer:") is None
