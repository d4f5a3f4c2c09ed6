"""Schemas of strangers: nothing they refer to is fetched, and none of them breaks whoever asks."""

import re
import urllib.request
from pathlib import Path

import pytest

from agentapp.engine import DraftRules, Tool, Workflow, schema_fault

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
    assert [path.name for path in sources if makes.search(path.read_text())] == ["json_schema.py"]
