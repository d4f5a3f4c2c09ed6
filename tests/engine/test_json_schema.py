"""Schemas of strangers: nothing they refer to is fetched, and none of them breaks whoever asks."""

import re
import urllib.request
from pathlib import Path

import pytest

from agentapp.engine import DraftRules, Tool, Workflow, schema_fault
from agentapp.engine import json_schema as judging

ROOT = Path(__file__).parents[2]
BAD = {
    "elsewhere": {"type": "object", "$ref": "http://169.254.169.254/latest/meta-data"},
    "endless": {"type": "object", "$ref": "#"},
    "no pattern": {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
}


@pytest.mark.parametrize("name", BAD)
def test_a_schema_that_cannot_be_used_is_a_fault_and_fetches_nothing(name, monkeypatch):
    fetched = []
    monkeypatch.setattr(urllib.request, "urlopen", lambda *args, **_: fetched.append(args))
    schema, value = BAD[name], {"a": "x"}
    said = [
        schema_fault(schema, value),
        DraftRules(schema).fault(value),
        Workflow("w", "t", parameters=schema).fault(value),
        Tool("t", "", schema, dict).argument_error(value),
        *(fault.message for fault in Tool("t", "", schema, dict).argument_errors(value)),
    ]
    assert len(said) == 5
    assert all("schema cannot be used" in text for text in said)
    assert fetched == []


def test_values_are_judged_in_one_place():
    makes = re.compile(r"Draft202012Validator\((?!$)|jsonschema\.validate\(|validator_for\(")
    folders = ("agentapp", "accounts", "conversations", "tools_admin")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert [path.name for path in sources if makes.search(path.read_text())] == [], "use `validator_of`"


def _doubled(levels):
    """A few lines that ask for 2 ** levels looks at one value."""
    steps = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**steps, f"d{levels}": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/d0"}}}


SLOW = {
    "pattern": ({"properties": {"a": {"pattern": "(a|aa)+$"}}}, {"a": "a" * 80 + "b"}),
    "pattern of names": ({"patternProperties": {"(a|aa)+$": {}}}, {"a" * 80 + "b": 1}),
    "pattern of other names": (
        {"patternProperties": {"(a|aa)+$": {}}, "additionalProperties": False},
        {"a" * 80 + "b": 1},
    ),
    "references": (_doubled(40), {"a": 1}),
    "many": (
        {"properties": {"a": {"items": {"anyOf": [{"pattern": f"(a|aa)+{n}$"} for n in range(9)]}}}},
        {"a": ["a" * 26 + "b"] * 5_000},
    ),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_schema_that_takes_too_long_is_given_up(name, monkeypatch):
    monkeypatch.setattr(judging, "SECONDS", 0.05)
    schema, value = SLOW[name]
    assert schema_fault(schema, value) == "the schema cannot be used (TooSlow)"


def test_a_long_list_is_compared_in_one_go():
    schema = {"properties": {"a": {"type": "array", "uniqueItems": True}}}
    rows = [{"n": number} for number in range(20_000)]
    assert schema_fault(schema, {"a": rows}) is None
    assert schema_fault(schema, {"a": [*rows, {"n": 7.0}]}) == "a: its items are not all different"
    assert schema_fault(schema, {"a": [1, True, "1", [1], [True]]}) is None


def test_patterns_and_names_are_judged_as_the_standard_says():
    schema = {
        "type": "object",
        "properties": {"code": {"pattern": r"^\p{Lu}{2}\d+$"}, "known": {}},
        "patternProperties": {"^n_": {"type": "integer"}},
        "additionalProperties": False,
    }
    assert schema_fault(schema, {"code": "ÄB12", "known": None, "n_1": 3}) is None
    assert schema_fault(schema, {"code": "x1"}) == r"code: 'x1' does not match '^\\p{Lu}{2}\\d+$'"
    assert schema_fault(schema, {"n_1": "3"}) == "n_1: '3' is not of type 'integer'"
    unexpected = "Additional properties are not allowed ('a', 'b' were unexpected)"
    assert schema_fault(schema, {"b": 1, "a": 2}) == unexpected
    assert schema_fault({"additionalProperties": {"type": "integer"}}, {"a": "x"}) == "a: 'x' is not of type 'integer'"
