"""What an operation sends, byte by byte, worked out here from the document by other means."""

import json
import re
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentapp.outbound import Refused
from tests.tools_admin.connectors.recording import Service
from tools_admin.connectors.base import Setup, ToolError, ToolSpec
from tools_admin.connectors.openapi.connector import OpenApiConnector
from tools_admin.connectors.openapi.document import read
from tools_admin.connectors.openapi.encoding import path_of
from tools_admin.connectors.openapi.operations import Reader

SHARED = Path(__file__).parents[5] / "shared" / "data" / "openapi"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not there")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


def sample(schema: Any, whole: Any, depth: int = 0) -> Any:
    """A value with something to encode in it."""
    while isinstance(schema, dict) and "$ref" in schema:
        schema = reduce(lambda found, part: found[part], schema["$ref"].removeprefix("#/").split("/"), whole)
    if not isinstance(schema, dict) or depth > 3:
        return "x"
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "integer":
            return max(7, schema.get("minimum", 7))
        case "number":
            return 1.5
        case "boolean":
            return True
        case "array":
            return [sample(schema.get("items"), whole, depth + 1), sample(schema.get("items"), whole, depth + 1)]
    if "properties" in schema or "allOf" in schema:
        parts = [schema, *schema.get("allOf", [])]
        properties = {name: part for piece in parts for name, part in piece.get("properties", {}).items()}
        return {n: sample(p, whole, depth + 1) for n, p in properties.items() if not p.get("readOnly")}
    return {"key": "a b/ü&=?"} if schema.get("type") == "object" else "a b/ü&=?"


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@needs_shared
@pytest.mark.parametrize("name", ["petstore-swagger2.json", "gotify-swagger2.json"])
async def test_what_arrives_at_a_service_of_swagger_2(service: Service, name: str) -> None:
    whole = json.loads((SHARED / name).read_text())
    connector = OpenApiConnector(service.setup())
    specs = {spec.key: spec for spec in Reader(read(json.dumps(whole))).operations()}
    for path, item in whole["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            await _check_swagger_2(service, connector, specs[f"{method.upper()} {path}"], whole, path, operation)


async def _check_swagger_2(
    service: Service, connector: Any, spec: ToolSpec, whole: Any, path: str, operation: Any
) -> None:
    arguments: dict[str, Any] = {}
    form: dict[str, Any] = {}
    target, query, headers, body = f"/api{path}", [], {}, b""
    for parameter in operation.get("parameters", []):
        place, name = parameter["in"], parameter["name"]
        value = sample(parameter.get("schema", parameter), whole)
        if place == "body":
            arguments["body"], body = value, json.dumps(value, ensure_ascii=False).encode()
        elif place == "formData":
            form[name] = "data:image/png;base64,iVBORw==" if parameter["type"] == "file" else value
        else:
            arguments[name] = value
        if place == "path":
            target = target.replace(f"{{{name}}}", quote(text(value), safe=""))
        elif place == "query":
            many = value if isinstance(value, list) and parameter.get("collectionFormat") == "multi" else [value]
            query += [f"{name}={quote(text(one), safe='')}" for one in many]
        elif place == "header":
            headers[name.lower()] = text(value)
    if form:
        arguments["body"] = form
    assert not list(jsonschema.Draft202012Validator(spec.parameters).iter_errors(arguments)), spec.key
    await connector.call(spec, arguments)
    sent = service.last
    assert sent.method == spec.definition["method"]
    assert sent.target == "?".join(filter(None, [target, "&".join(query)])), spec.key
    for name, value in headers.items():
        assert sent.headers[name] == value.encode().decode("latin-1")
    has_file = any(p["in"] == "formData" and p["type"] == "file" for p in operation.get("parameters", []))
    if has_file or (form and sent.headers["content-type"].startswith("multipart/")):
        _check_multipart(sent, form)
    elif form:
        assert sent.headers["content-type"] == "application/x-www-form-urlencoded"
        assert sent.body.decode() == "&".join(f"{n}={quote(text(v), safe='')}" for n, v in form.items())
    else:
        assert sent.body == body, spec.key
        assert ("content-type" in sent.headers) == bool(body)


def _check_multipart(sent: Any, form: dict[str, Any]) -> None:
    boundary = re.fullmatch(r"multipart/form-data; boundary=(\w+)", sent.headers["content-type"]).group(1)
    expected = b""
    for name, value in form.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
        if str(value).startswith("data:"):
            head += f'; filename="{name}"\r\nContent-Type: image/png'
            content = b"\x89PNG"
        else:
            content = text(value).encode()
        expected += head.encode() + b"\r\n\r\n" + content + b"\r\n"
    assert sent.body == expected + f"--{boundary}--\r\n".encode()


# The examples of the specification: blue, black, brown; R 100, G 200, B 150.
ARRAY, OBJECT = ["blue", "black", "brown"], {"R": 100, "G": 200, "B": 150}
STYLES = [
    ("path", "simple", False, ARRAY, "/api/blue,black,brown"),
    ("path", "simple", True, OBJECT, "/api/R=100,G=200,B=150"),
    ("path", "simple", False, OBJECT, "/api/R,100,G,200,B,150"),
    ("path", "label", False, "blue", "/api/.blue"),
    ("path", "label", True, ARRAY, "/api/.blue.black.brown"),
    ("path", "label", False, ARRAY, "/api/.blue,black,brown"),
    ("path", "label", True, OBJECT, "/api/.R=100.G=200.B=150"),
    ("path", "matrix", False, "blue", "/api/;color=blue"),
    ("path", "matrix", False, ARRAY, "/api/;color=blue,black,brown"),
    ("path", "matrix", True, ARRAY, "/api/;color=blue;color=black;color=brown"),
    ("path", "matrix", True, OBJECT, "/api/;R=100;G=200;B=150"),
    ("path", "matrix", False, OBJECT, "/api/;color=R,100,G,200,B,150"),
    ("query", "form", True, "", "/api/?color="),
    ("query", "form", True, "blue", "/api/?color=blue"),
    ("query", "form", True, ARRAY, "/api/?color=blue&color=black&color=brown"),
    ("query", "form", False, ARRAY, "/api/?color=blue,black,brown"),
    ("query", "form", True, OBJECT, "/api/?R=100&G=200&B=150"),
    ("query", "form", False, OBJECT, "/api/?color=R,100,G,200,B,150"),
    ("query", "spaceDelimited", False, ARRAY, "/api/?color=blue%20black%20brown"),
    ("query", "pipeDelimited", False, ARRAY, "/api/?color=blue%7Cblack%7Cbrown"),
    ("query", "deepObject", True, OBJECT, "/api/?color[R]=100&color[G]=200&color[B]=150"),
]


@pytest.mark.parametrize(("place", "style", "explode", "value", "expected"), STYLES)
async def test_styles_of_parameters(service: Service, place, style, explode, value, expected) -> None:
    parameter = {"name": "color", "in": place, "style": style, "explode": explode, "schema": {}}
    path = "/{color}" if place == "path" else "/"
    whole = {"openapi": "3.1.0", "paths": {path: {"get": {"parameters": [parameter]}}}}
    [spec] = Reader(read(json.dumps(whole))).operations()
    await OpenApiConnector(service.setup()).call(spec, {"color": value})
    assert service.last.target == expected


FORM = b"a=1&a=2&b=%7B%22c%22%3A%201%7D&d=x%20y"


async def _sent(service: Service, arguments: dict[str, Any], operation: dict[str, Any]) -> Any:
    [spec] = Reader(read(json.dumps({"openapi": "3.0.0", "paths": {"/x": {"post": operation}}}))).operations()
    await OpenApiConnector(service.setup()).call(spec, arguments)
    return service.last


async def test_headers_and_cookies(service: Service) -> None:
    parameters = [
        {"name": "X-List", "in": "header", "schema": {}},
        {"name": "X-Pairs", "in": "header", "explode": True, "schema": {}},
        {"name": "session", "in": "cookie", "schema": {}},
        {"name": "filter", "in": "query", "content": {"application/json": {"schema": {}}}},
        {"name": "raw", "in": "query", "allowReserved": True, "schema": {}},
        {"name": "absent", "in": "query", "schema": {}},
        {"name": "Authorization", "in": "header", "schema": {}},
    ]
    values = {
        "X-List": [1, 2],
        "X-Pairs": {"a": 1},
        "session": "a b",
        "filter": {"a": [1]},
        "raw": "a/b?c",
        "Authorization": "x",
    }
    sent = await _sent(service, values, {"parameters": parameters})
    assert (sent.headers["x-list"], sent.headers["x-pairs"], sent.headers["cookie"]) == ("1,2", "a=1", "session=a%20b")
    assert sent.target == "/api/x?filter=%7B%22a%22%3A%20%5B1%5D%7D&raw=a/b?c"
    assert "authorization" not in sent.headers, "signing in is not a parameter"


@pytest.mark.parametrize(
    ("kind", "value", "body"),
    [
        ("application/json", {"a": [1, "ü"]}, '{"a": [1, "ü"]}'.encode()),
        ("application/vnd.api+json", {"a": 1}, b'{"a": 1}'),
        (
            "application/x-www-form-urlencoded",
            {"a": [1, 2], "b": {"c": 1}, "d": "x y"},
            b"a=1&a=2&b=%7B%22c%22%3A%201%7D&d=x%20y",
        ),
        ("text/plain", "hello", b"hello"),
        ("application/octet-stream", "data:;base64,AAEC", b"\0\1\2"),
        ("application/xml", "<a/>", b"<a/>"),
    ],
)
async def test_bodies(service: Service, kind: str, value: Any, body: bytes) -> None:
    sent = await _sent(service, {"body": value}, {"requestBody": {"content": {kind: {"schema": {}}}}})
    assert (sent.body, sent.headers["content-type"]) == (body, kind)


async def test_files_of_a_multipart_body(service: Service) -> None:
    schema = {"properties": {"file": {"type": "string", "format": "binary"}, 'na"me\r\n': {}, "meta": {}}}
    values = {"file": "plain", 'na"me\r\n': 5, "meta": {"a": 1}}
    content = {"multipart/form-data": {"schema": schema}}
    sent = await _sent(service, {"body": values}, {"requestBody": {"content": content}})
    assert b'name="file"; filename="file"\r\nContent-Type: text/plain\r\n\r\nplain\r\n' in sent.body
    assert b'name="na%22me%0D%0A"\r\n\r\n5\r\n' in sent.body
    assert b'name="meta"\r\nContent-Type: application/json\r\n\r\n{"a": 1}\r\n' in sent.body


async def test_an_operation_with_its_own_server_gets_no_credential_of_the_connector(service: Service) -> None:
    asked: list[str] = []

    async def authorize(url: str, wanted: Any = None) -> Any:
        asked.append(url)
        raise ToolError("stop here")

    operation = {"servers": [{"url": "https://uploads.example.org/v9"}]}
    [spec] = Reader(read(json.dumps({"openapi": "3.0.0", "paths": {"/x": {"post": operation}}}))).operations()
    with pytest.raises(ToolError, match="stop here"):
        await OpenApiConnector(service.setup(authorize=authorize)).call(spec, {})
    assert asked == ["https://uploads.example.org/v9/x"], "whoever keeps the credentials sees where they would go"


@given(st.text(alphabet="ab./\\%25eE;:@ü\n", max_size=12), st.sampled_from(["simple", "label", "matrix"]))
def test_no_value_leaves_its_place(value: str, style: str) -> None:
    parameters = [{"name": "v", "in": "path", "argument": "v", "style": style, "explode": False}]
    try:
        path = path_of("/a/{v}/z", parameters, {"v": value})
    except (Refused, ToolError):
        return
    assert path.startswith("/a/") and path.endswith("/z") and path.count("/") == 3


async def test_a_service_that_the_document_names_is_checked_like_any_address() -> None:
    [spec] = Reader(read('{"openapi": "3.0.0", "paths": {"/x": {"get": {}}}}')).operations()
    with pytest.raises(Exception, match="public internet"):
        await OpenApiConnector(Setup({"base_url": "http://169.254.169.254/latest"})).call(spec, {})
