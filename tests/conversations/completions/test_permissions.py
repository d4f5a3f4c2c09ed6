"""What is guarded elsewhere is guarded on this way in, too; and a client that comes with anything gets an answer."""

import json
import subprocess
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI

from tests.product import Person, Product, eventually

ROUTE = "route-general"


def ask(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def test_a_tool_that_asks_first_waits_for_a_person_here_too(
    product: Product, person: Person, client: OpenAI, agent: str
) -> None:
    product.execute("UPDATE tools_admin_tool SET approval = 'always' WHERE name = 'calculator'")
    try:
        stream = client.chat.completions.create(
            model=agent, messages=ask("What is 12 * 12?"), stream=True, extra_body={"x_steps": True}
        )
        for chunk in stream:
            steps = chunk.model_extra.get("x_steps") or [{}]
            if steps[0].get("channel") == "run" and steps[0]["data"]["status"] == "waiting":
                break
        with httpx2.Client(base_url=f"{product.url}/api/v1", headers=person.bearer) as api:
            [request] = api.get("/approvals").json()["items"]
            assert api.post(f"/approvals/{request['id']}", json={"decision": "approve"}).status_code == 200
        assert "144" in "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    finally:
        product.execute("UPDATE tools_admin_tool SET approval = 'never' WHERE name = 'calculator'")


def test_a_key_without_the_scope_may_not_ask(product: Product, person: Person, client: OpenAI) -> None:
    product.execute("UPDATE accounts_apikey SET scopes = '{runs:read}' WHERE user_id = %s", person.id)
    with pytest.raises(openai.PermissionDeniedError) as caught:
        client.chat.completions.create(model=ROUTE, messages=ask("Hello"))
    assert caught.value.code == "insufficient_scope"


def test_an_agent_of_other_groups_does_not_exist(product: Product, client: OpenAI, agent: str) -> None:
    number = agent.removeprefix("agent-")
    product.execute("INSERT INTO auth_group (name) VALUES ('secret-circle')")
    product.execute(
        "INSERT INTO tools_admin_agent_groups (agent_id, group_id) SELECT %s, id FROM auth_group"
        " WHERE name = 'secret-circle'",
        number,
    )
    try:
        assert agent not in [model.id for model in client.models.list()]
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model=agent, messages=ask("Hello"))
    finally:
        product.execute("DELETE FROM tools_admin_agent_groups WHERE agent_id = %s", number)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b'{"model": 5}', b'{"messages": {}}', b"\xff\xfe", b'{"model": "\\ud800"}'],
)
def test_no_body_breaks_the_server(product: Product, person: Person, body: bytes) -> None:
    headers = {**person.bearer, "Content-Type": "application/json"}
    answer = httpx2.post(f"{product.url}/v1/chat/completions", content=body, headers=headers)
    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_a_body_that_is_too_large_is_refused(product: Product, person: Person) -> None:
    body = {"model": ROUTE, "messages": ask("x" * 3_000_000)}
    answer = httpx2.post(f"{product.url}/v1/chat/completions", json=body, headers=person.bearer, timeout=30)
    assert answer.status_code in (400, 413)
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_odd_text_goes_through(product: Product, client: OpenAI) -> None:
    reply = client.chat.completions.create(model=ROUTE, messages=ask("NUL \x00 and 😀 and </script>"))
    assert reply.choices[0].message.content == "Hello! You wrote: NUL  and 😀 and </script>"


def test_curl_streams(product: Product, person: Person) -> None:
    body = json.dumps({"model": ROUTE, "stream": True, "messages": ask("Hello")})
    headers = [f"Authorization: Bearer {person.key}", "Content-Type: application/json"]
    options = [part for header in headers for part in ("-H", header)]
    command = ["curl", "-sSN", f"{product.url}/v1/chat/completions", *options, "-d", body]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert told.startswith("data: {")
    assert told.endswith("data: [DONE]\n\n")


def test_a_worker_that_dies_in_the_middle_ends_the_stream_with_an_error_or_the_whole_text(
    product: Product, client: OpenAI
) -> None:
    product.model.token_delay = 0.01
    stream = client.chat.completions.create(model=ROUTE, messages=ask("Tell a long story"), stream=True)
    text = ""
    with pytest.raises(openai.APIError, match="broke off"):
        for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            if "word20" in text and "worker" in product.processes:
                product.end("worker")
                product.restore()
                product.model.token_delay = 0.0
    assert text
    eventually(lambda: product.is_ready(), "the product goes on")
