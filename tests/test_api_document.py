"""The OpenAPI documents: known, described, and with examples that are what they are examples of."""

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentapp.api import api
from agentapp.openai_api import api as openai_api

DOCS = Path(__file__).resolve().parent.parent / "docs"
APIS = {"openapi.json": api, "openapi_v1.json": openai_api}
both = pytest.mark.parametrize("name", APIS)


def written(name: str) -> str:
    document = APIS[name].get_openapi_schema()
    return json.dumps(document, indent=1, sort_keys=True, default=str, ensure_ascii=False) + "\n"


@cache
def document(name: str) -> Any:
    return json.loads(written(name))


def calls(name: str) -> Iterator[tuple[str, Any]]:
    for path, methods in document(name)["paths"].items():
        for method, call in methods.items():
            yield f"{method} {path}", call


def contents(call: Any) -> Iterator[tuple[str, str, Any]]:
    """Each body and answer of a call: status (or "body"), media type, content."""
    for status, told in {"body": call.get("requestBody", {}), **call["responses"]}.items():
        for kind, content in told.get("content", {}).items():
            yield status, kind, content


def properties(schema: Any, where: str) -> Iterator[tuple[str, Any]]:
    for name, part in schema.get("properties", {}).items():
        yield f"{where}.{name}", part
        yield from properties(part, f"{where}.{name}")


@both
def test_the_document_is_the_known_one(name: str) -> None:
    """`UPDATE_OPENAPI=1 python -m pytest tests/test_api_document.py -k known` writes it: look at the difference."""
    if os.environ.get("UPDATE_OPENAPI"):
        (DOCS / name).write_text(written(name))
    assert written(name) == (DOCS / name).read_text(), "The API has changed. If it was meant to: see this docstring."


@both
def test_nothing_is_without_words(name: str) -> None:
    wordless = [
        where
        for where, call in calls(name)
        if not (call.get("summary") and call.get("description") and call.get("tags"))
    ]
    for where, call in calls(name):
        wordless += [f"{where} {given['name']}" for given in call["parameters"] if not given.get("description")]
        wordless += [f"{where} {status}" for status, told in call["responses"].items() if not told.get("description")]
    for title, schema in document(name)["components"]["schemas"].items():
        wordless += [where for where, part in properties(schema, title) if not part.get("description")]
    assert wordless == []


@both
def test_each_body_and_answer_has_an_example_that_fits_it(name: str) -> None:
    components = document(name)["components"]
    for where, call in calls(name):
        for status, kind, content in contents(call):
            if content["schema"].get("format") == "binary":
                continue
            schema = content["schema"] | {"components": components}
            checker = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
            faults = [fault.message for fault in checker.iter_errors(content["example"])]
            assert faults == [], f"{where} {status} {kind}"


@both
def test_the_example_of_an_answer_leaves_nothing_out(name: str) -> None:
    schemas = document(name)["components"]["schemas"]
    for title, schema in schemas.items():
        if title.endswith("Out") and schema.get("examples"):
            assert set(schema["examples"][0]) >= set(schema["required"]), title
            assert set(schema["examples"][0]) <= set(schema["properties"]), title


@both
def test_parameters_of_addresses_have_examples_of_their_kind(name: str) -> None:
    for where, call in calls(name):
        for given in call["parameters"]:
            if given["in"] == "path":
                Draft202012Validator(given["schema"]).validate(given["example"])
            for shown in given["schema"].get("examples", ()):
                assert Draft202012Validator(given["schema"]).is_valid(shown), f"{where} {given['name']}"


def test_the_page_for_integrators_lists_every_call() -> None:
    listed = re.findall(
        r"`([A-Z]+) (/[^`]*)`", (DOCS / "api.md").read_text().split("## All calls")[1].split("\n## ")[0]
    )
    there = {where.replace(" /api/v1", " ") for where, _ in calls("openapi.json")}
    assert sorted(f"{method.lower()} {path}" for method, path in listed) == sorted(
        re.sub(r"\{\w+\}", "{id}", where) for where in there
    )


def test_every_call_tells_of_its_errors() -> None:
    for where, call in calls("openapi.json"):
        assert {"400", "401", "403", "429", "503"} <= set(call["responses"]), where
        if "if-match" in {given["name"].lower() for given in call["parameters"]}:
            assert {"412"} <= set(call["responses"]) and "headers" in call["responses"]["200"], where
