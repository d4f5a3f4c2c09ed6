from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentapp.outbound import Refused
from tests.tools_admin.connectors.recording import Service
from tools_admin.connectors.base import Authorization, ConnectorError, ConnectorUnavailable, Setup, ToolError, ToolSpec
from tools_admin.connectors.http.connector import HttpConnector
from tools_admin.connectors.http.template import Missing, fill, fill_path, names_in


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


def action(**definition: Any) -> ToolSpec:
    return ToolSpec("act", "Acts.", {"type": "object"}, definition={"method": "GET", "path": "/x", **definition})


async def test_arguments_arrive_in_path_query_headers_and_body(service: Service) -> None:
    connector = HttpConnector(service.setup(settings={"headers": {"X-Team": "sales"}}))
    spec = action(
        method="POST",
        path="/orders/{order_id}/lines",
        query={"note": "for {person}", "page": "{page}"},
        headers={"X-Person": "{person}"},
        body={"items": "{items}", "comment": "By {person}", "urgent": True, "gone": "{page}"},
    )
    result = await connector.call(spec, {"order_id": "a/b ü", "person": "Ada & Co", "items": [{"sku": 1}]})
    assert (result.content, result.is_error) == ('{"ok": true}', False)
    sent = service.last
    assert (sent.method, sent.target) == ("POST", "/api/orders/a%2Fb%20%C3%BC/lines?note=for%20Ada%20%26%20Co")
    assert sent.body == b'{"items": [{"sku": 1}], "comment": "By Ada & Co", "urgent": true}'
    assert (sent.headers["x-team"], sent.headers["x-person"]) == ("sales", "Ada & Co")
    assert sent.headers["content-type"] == "application/json"
    assert "cookie" not in sent.headers


async def test_jmespath_chooses_what_the_model_is_given(service: Service) -> None:
    service.reply = (200, "application/json", b'{"orders": [{"id": 1, "total": 5, "secret": "x"}]}')
    result = await HttpConnector(service.setup()).call(action(select="orders[].{id: id, total: total}"), {})
    assert result.content == '[{"id": 1, "total": 5}]'


@pytest.mark.parametrize("value", ["..", "../admin", "%2e%2e", "..%2fadmin", "", "a\r\nX: y"])
async def test_an_argument_does_not_leave_its_place_in_the_path(service: Service, value: str) -> None:
    with pytest.raises(ToolError):
        await HttpConnector(service.setup()).call(action(path="/users/{id}/public"), {"id": value})
    assert service.requests == []


async def test_an_argument_cannot_add_a_header(service: Service) -> None:
    with pytest.raises(ToolError, match="X-Person"):
        await HttpConnector(service.setup()).call(action(headers={"X-Person": "{p}"}), {"p": "a\r\nX-Admin: 1"})
    assert service.requests == []


async def test_a_missing_argument_of_the_path_is_named(service: Service) -> None:
    with pytest.raises(ToolError, match="order_id"):
        await HttpConnector(service.setup()).call(action(path="/orders/{order_id}"), {})


@pytest.mark.parametrize(
    ("status", "kind", "body", "content", "is_error"),
    [
        (204, "", b"", "HTTP 204 X, without content.", False),
        (200, "text/plain", b"hello", "hello", False),
        (200, "text/plain; charset=klingon", b"hello", "hello", False),
        (200, "application/json", b"{no json", "{no json", False),
        (404, "application/json", b'{"error": "no such order"}', 'HTTP 404 X\n{"error": "no such order"}', True),
        (500, "text/html", b"<b>oops</b>", "HTTP 500 X\n<b>oops</b>", True),
    ],
)
async def test_answers_as_results(service: Service, status, kind, body, content, is_error) -> None:
    service.reply = (status, kind, body)
    result = await HttpConnector(service.setup()).call(action(), {})
    assert (result.content, result.is_error) == (content, is_error)


async def test_what_is_no_text_is_a_file(service: Service) -> None:
    service.reply = (200, "image/png", b"\x89PNG")
    result = await HttpConnector(service.setup()).call(action(path="/charts/sales.png"), {})
    [file] = result.artifacts
    assert (file.filename, file.content_type, file.data) == ("sales.png", "image/png", b"\x89PNG")


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_service_that_is_away_is_unavailable(service: Service, status: int) -> None:
    service.reply = (status, "text/plain", b"")
    with pytest.raises(ConnectorUnavailable):
        await HttpConnector(service.setup()).call(action(), {})


async def test_inner_hosts_are_closed_unless_allowed(service: Service) -> None:
    with pytest.raises(ConnectorError, match="public internet"):
        await HttpConnector(Setup({"base_url": service.url})).call(action(), {})


async def test_credentials_are_put_in_last(service: Service) -> None:
    async def authorize(url: str, wanted: Any = None) -> Authorization:
        return Authorization({"Authorization": "Bearer t"}, {"key": "k&1"}, {"session": "c"}, ("t", "k&1", "c"))

    await HttpConnector(service.setup(authorize=authorize)).call(action(query={"a": "1"}), {})
    assert service.last.target == "/api/x?a=1&key=k%261"
    assert (service.last.headers["authorization"], service.last.headers["cookie"]) == ("Bearer t", "session=c")


async def test_checking_says_what_the_service_answers(service: Service) -> None:
    assert await HttpConnector(service.setup()).check() == "The server answers: HTTP 200 X."
    with pytest.raises(ConnectorError, match="settings"):
        HttpConnector(Setup({"base_url": "nowhere"}))


@given(st.dictionaries(st.sampled_from("abc"), st.text()))
def test_no_arguments_change_the_shape_of_the_path(arguments: dict[str, str]) -> None:
    try:
        path = fill_path("/x/{a}/y/{b}-{c}", arguments)
    except (Refused, Missing):
        return
    assert path.split("/")[1] == "x" and path.split("/")[3] == "y" and len(path.split("/")) == 5


def test_templates() -> None:
    assert fill({"a": ["{x}", "{y}"], "b": "{y}"}, {"x": {"deep": None}}) == {"a": [{"deep": None}]}
    assert fill("{x}", {}) is None
    assert list(names_in({"a": "{x} {y}", "b": ["{x}"]})) == ["x", "y", "x"]
