"""What is pasted as an OpenAPI document: read when it is one, refused in words when it is not, and never a burden."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentapp.engine import EffectClass
from tools_admin.connectors.base import ConnectorError
from tools_admin.connectors.openapi.document import read
from tools_admin.connectors.openapi.operations import Reader

SHARED = Path(__file__).parents[5] / "shared" / "data" / "openapi"
INDEX = json.loads((SHARED / "_index.json").read_text()) if SHARED.is_dir() else []
needs_shared = pytest.mark.skipif(not INDEX, reason="../shared/data is not there")


def operations(text: str) -> list[Any]:
    return list(Reader(read(text)).operations())


def document(**parts: Any) -> str:
    return json.dumps({"openapi": "3.0.3", "info": {"title": "T", "version": "1"}, **parts})


def one(operation: dict[str, Any], path: str = "/x", method: str = "get", **parts: Any) -> Any:
    [spec] = operations(document(paths={path: {method: operation}}, **parts))
    return spec


@needs_shared
@pytest.mark.parametrize("entry", [e for e in INDEX if "bomb" not in e["file"]], ids=lambda entry: entry["file"])
def test_every_known_document_is_imported(entry: dict[str, Any]) -> None:
    found = operations((SHARED / entry["file"]).read_text())
    assert len(found) == entry["operations"]
    assert len({spec.key for spec in found}) == len(found)
    for spec in found:
        jsonschema.Draft202012Validator.check_schema(spec.parameters)
        assert spec.parameters["type"] == "object" and spec.description
        assert "http" not in str(spec.parameters.get("$ref", "")), "nothing refers to the outside"
        json.dumps(spec.definition)
        reads = spec.definition["method"] in ("GET", "HEAD", "OPTIONS")
        assert spec.effect_class == (EffectClass.READ if reads else EffectClass.ONCE)


BOMBS = {
    "aliases": "openapi: 3.0.0\na0: &a0 [x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
    "merges": "openapi: 3.0.0\na0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 12)),
    "itself": "openapi: 3.0.0\npaths: &a {b: *a}",
    "deep JSON": '{"a":' * 100_000,
    "deep YAML": "openapi: 3.0.0\nx: " + "[" * 100_000,
    "deep blocks": "- " * 100_000,
    "large": '"' + "x" * 10_000_001 + '"',
    "object": "openapi: !!python/object/apply:os.system [echo]",
    "number": "openapi: 3.0.0\nx: " + "1" * 10_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name: str) -> None:
    with pytest.raises(ConnectorError):
        read(BOMBS[name])


@needs_shared
def test_the_known_alias_bomb_is_refused() -> None:
    with pytest.raises(ConnectorError, match="aliases"):
        read((SHARED / "own-alias-bomb-swagger2.yaml").read_text())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("[]", "names and values"),
        ("<html>", "no OpenAPI document"),
        ("{}", "neither “openapi” nor “swagger”"),
        ('{"openapi": "4.0.0"}', "OpenAPI '4.0.0' is not known"),
        ('{"openapi": "3.0.0", }}', "no JSON"),
        ("a: b: c", "neither JSON nor YAML"),
    ],
)
def test_what_is_no_document_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(ConnectorError, match=message):
        read(text)


def test_yaml_gives_what_json_would() -> None:
    found = read("openapi: 3.0.0\nx: {200: 2024-01-01, yes: 1.5, d: .inf}")
    assert found["x"] == {"200": "2024-01-01", "true": 1.5, "d": "inf"}
    assert read(document(x="a\0b\ud800"))["x"] == "ab?", "what no database can hold is taken out"


def test_a_large_document_is_survived() -> None:
    paths = {f"/p{n}": {"get": {"operationId": f"op{n}", "description": "x" * 1_000}} for n in range(6_000)}
    assert len(operations(document(paths=paths))) == 5_000


def test_arguments_have_safe_names_and_collide_nowhere() -> None:
    parameters = [
        {"name": name, "in": place, "schema": {"type": "string"}}
        for name, place in [
            ("id", "path"),
            ("id", "query"),
            ("filter[a b]", "query"),
            ("ü", "query"),
            ("X-Y", "header"),
        ]
    ]
    spec = one({"parameters": parameters}, "/x/{id}")
    assert list(spec.parameters["properties"]) == ["id", "id_query", "filter_a_b", "query", "X-Y"]
    assert spec.parameters["required"] == ["id"]


def test_parameters_of_the_path_are_overridden_by_those_of_the_operation() -> None:
    shared = [{"name": "a", "in": "query", "schema": {"type": "string"}}]
    item = {"parameters": shared, "get": {"parameters": [{**shared[0], "schema": {"type": "integer"}}]}}
    [spec] = operations(document(paths={"/x": item}))
    assert spec.parameters["properties"] == {"a": {"type": "integer"}}


def test_recursion_stays_recursion() -> None:
    tree = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}},
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}}, "required": True}
    spec = one({"requestBody": body}, method="post", components={"schemas": {"Tree": tree}})
    validator = jsonschema.Draft202012Validator(spec.parameters)
    assert validator.is_valid({"body": {"children": [{"children": []}]}})
    assert not validator.is_valid({"body": {"children": [{"children": 5}]}})
    assert not validator.is_valid({})


def test_old_words_become_new_ones() -> None:
    schema = {"type": "integer", "nullable": True, "minimum": 1, "exclusiveMinimum": True, "pattern": "(a+)+$"}
    made = one({"parameters": [{"name": "n", "in": "query", "schema": schema}]}).parameters["properties"]["n"]
    assert made == {"type": ["integer", "null"], "exclusiveMinimum": 1, "description": "Pattern: (a+)+$"}


def test_nothing_outside_the_document_is_looked_up() -> None:
    for reference in ("http://169.254.169.254/x", "file:///etc/passwd", "other.yaml#/a", "#/not/there", "#/paths/~2"):
        schema = {"$ref": reference}
        spec = one({"parameters": [{"name": "n", "in": "query", "schema": schema}, {"$ref": reference}]})
        assert spec.parameters["properties"] == {"n": {}}


def test_what_only_the_server_writes_is_not_asked_for() -> None:
    schema = {"required": ["id", "name"], "properties": {"id": {"readOnly": True}, "name": {"type": "string"}}}
    spec = one({"requestBody": {"content": {"application/json": {"schema": schema}}}}, method="put")
    body = spec.parameters["properties"]["body"]
    assert (list(body["properties"]), body["required"]) == (["name"], ["name"])


def test_security_alternatives_are_taken_over() -> None:
    schemes = {"securitySchemes": {"a": {"type": "http", "scheme": "bearer"}, "b": {"type": "http", "scheme": "basic"}}}
    spec = one({"security": [{"a": [], "b": []}, {}]}, components=schemes)
    assert spec.definition["security"] == [["a", "b"], []]
    assert one({}, components=schemes).definition["security"] == []
    assert "security" not in one({}).definition


@pytest.mark.parametrize(
    ("servers", "source", "expected"),
    [
        ([{"url": "https://a.example/v1/"}], "", "https://a.example/v1"),
        ([{"url": "/v2"}], "https://a.example/docs/openapi.json", "https://a.example/v2"),
        ([{"url": "v2"}], "", ""),
        (
            [{"url": "https://{r}.x/{v}", "variables": {"r": {"default": "eu"}, "v": {"default": "1"}}}],
            "",
            "https://eu.x/1",
        ),
        ([], "https://a.example/openapi.json", "https://a.example"),
        ([5], "", ""),
        ([{"url": "https://[", "variables": 3}], "https://a.example/x", ""),
    ],
)
def test_where_the_service_is(servers: Any, source: str, expected: str) -> None:
    assert Reader(read(document(servers=servers))).base_url(source) == expected


WORDS = [
    "type",
    "properties",
    "items",
    "$ref",
    "allOf",
    "required",
    "in",
    "name",
    "schema",
    "parameters",
    "get",
    "post",
    "requestBody",
    "content",
    "application/json",
    "security",
    "servers",
    "url",
    "operationId",
    "#/components/x",
    "query",
    "path",
    "/x/{a}",
    "object",
    "array",
    "string",
    "components",
    "x",
    "nullable",
    "enum",
    "minimum",
    "tags",
]
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=30,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.dictionaries(
        st.sampled_from(["/x/{a}", "/y", "z"]),
        st.dictionaries(st.sampled_from(["get", "post", "parameters", "$ref"]), JUNK),
    ),
    JUNK,
    st.sampled_from([{"openapi": "3.0.0"}, {"openapi": "3.1.0"}, {"swagger": "2.0"}]),
)
def test_no_document_breaks_the_importer(paths: Any, components: Any, version: dict[str, str]) -> None:
    text = json.dumps(
        {**version, "paths": paths, "components": components, "definitions": components, "security": components}
    )
    reader = Reader(read(text))
    for spec in reader.operations():
        jsonschema.Draft202012Validator.check_schema(spec.parameters)
        assert isinstance(spec.definition["parameters"], list)
    reader.base_url()
    reader.security_schemes()


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abc:-[]{}&*<!|>'\"#%@`, \n\t0123", max_size=200))
def test_any_text_is_a_document_or_refused(text: str) -> None:
    for pasted in (text, f"openapi: 3.0.0\n{text}", yaml.safe_dump({"openapi": "3.0.0", "x": text})):
        try:
            read(pasted)
        except ConnectorError as error:
            assert str(error)
