"""`extract_json` on what models write."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentapp.engine import extract_json

from .cases import cases_of

CASES = {n: c for n, c in cases_of("model_text").items() if c["expected_kind"] in ("json", "unparseable")}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_recorded_texts_give_the_expected_object(case):  # E-40
    allowed = [case["expected"], *case["also_acceptable"]]
    assert extract_json(case["text"]) in [None if value == "unparseable" else value for value in allowed]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure!\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ('Text {not json} then {"a": {"b": "}"}} end', {"a": {"b": "}"}}),
        (r'{"formula": "\frac{1}{2} \alpha"}', {"formula": "\frac{1}{2} \\alpha"}),
        ('{"text": "two\nlines"}', {"text": "two\nlines"}),
        ('<think>{"a": 0}</think>{"a": 1}', {"a": 1}),
        ("{'a': 'it', 'b': True,}", {"a": "it", "b": True}),
        ("[1, 2]", None),
        ("42", None),
        ("", None),
        ('{"a": NaN}', None),
        ('{"a": 1', None),
    ],
)
def test_objects_are_found_and_nothing_else(text, expected):  # E-23, E-40
    assert extract_json(text) == expected


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(), JSON_VALUES, max_size=4),
    st.sampled_from(["{}", "Here: {}", "```json\n{}\n```", "{} ok"]),
)
def test_any_object_survives_its_wrapping(value, wrapping):  # E-40
    assert extract_json(wrapping.replace("{}", json.dumps(value))) == value


PIECES = ["\\alpha", "\\sum", "x", " ", "\n", "\t", "{", "}", "[", "`", "//", "'", ",", "ä", "🙂"]
RAW_STRINGS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), RAW_STRINGS, min_size=1), st.sampled_from(["{}", "So: {} then"])
)
def test_strings_survive_escapes_and_breaks_that_a_model_forgot(value, wrapping):  # E-23, E-40
    """Written with raw line breaks, and with the single backslash of a formula."""
    text = "{" + ", ".join(f'"{name}": "{string}"' for name, string in value.items()) + "}"
    assert extract_json(wrapping.replace("{}", text)) == value


@given(st.text(st.characters(), max_size=60), st.text(st.characters(), max_size=60))
def test_no_surroundings_make_it_raise(before, after):  # E-40
    for text in (before, before + '{"a": 1}' + after, f"```json\n{before}\n```{after}"):
        found = extract_json(text)
        assert found is None or isinstance(found, dict)


@given(st.text(alphabet='{}[]"\\:,ab\n`<think>', max_size=200))
def test_no_text_makes_it_raise(text):  # E-40
    found = extract_json(text)
    assert found is None or isinstance(found, dict)


@pytest.mark.parametrize(
    "garbage", ["{" * 200_000, '{"a":' * 40_000, '"' * 200_000, "{}" + "[" * 200_000, '{"' + "\\" * 200_000]
)
def test_garbage_is_refused_quickly(garbage):
    begun = time.process_time()
    assert extract_json(garbage) in (None, {})
    assert time.process_time() - begun < 2
