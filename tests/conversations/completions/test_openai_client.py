"""What the OpenAI client does elsewhere it does here: asks, streams, uses tools, reads forms, and takes errors."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from tests.conversations.test_main_job import call
from tests.product import Person, Product, eventually

ROUTE = "route-general"
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}

IMAGE = {"type": "image_url", "image_url": {"url": "http://10.0.0.1/secret.png"}}


def ask(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def run_of(product: Product, completion: str) -> tuple[Any, ...]:
    columns = "status, reason, mode, usage, api_key_id IS NOT NULL"
    [row] = product.sql(f"SELECT {columns} FROM conversations_run WHERE id = %s", completion.removeprefix("chatcmpl-"))  # noqa: S608
    return tuple(row)


def test_agents_and_routes_are_models(client: OpenAI, agent: str) -> None:
    ids = [model.id for model in client.models.list()]
    assert {agent, ROUTE} <= set(ids)
    assert client.models.retrieve(agent).id == agent
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("agent-999999")


def test_a_route_answers_with_exactly_what_was_asked(product: Product, client: OpenAI) -> None:
    product.model.requests.clear()
    messages: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [{"type": "text", "text": "Good morning"}]},
    ]
    reply = client.chat.completions.create(
        model=ROUTE, messages=messages, temperature=0.25, max_tokens=50, stop=["END"], seed=7
    )
    assert reply.choices[0].finish_reason == "stop"
    assert (reply.object, reply.model) == ("chat.completion", ROUTE)
    assert reply.usage and reply.usage.prompt_tokens == 100
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    [request] = product.model.requests
    assert [m["role"] for m in request["messages"]] == ["system", "user", "assistant", "user"]
    assert request["messages"][0]["content"] == "Be brief."
    assert (request["temperature"], request["max_tokens"], request["stop"], request["seed"]) == (0.25, 50, ["END"], 7)
    status, reason, mode, _, by_key = run_of(product, reply.id)
    assert (status, reason, mode, by_key) == ("completed", "final_answer", "relay", True)


def test_a_stream_is_the_same_text_in_pieces(product: Product, client: OpenAI) -> None:
    product.model.token_delay = 0.002
    stream = client.chat.completions.create(
        model=ROUTE, messages=ask("Tell a long story"), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    pieces = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
    assert len(pieces) > 3
    assert "".join(pieces) == " ".join(f"word{n}" for n in range(400))
    assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == ["stop"]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c.usage.completion_tokens for c in chunks if c.usage] == [400]
    assert chunks[-1].choices == []
    assert len({c.id for c in chunks}) == 1


def test_an_agent_works_with_its_own_tools_on_the_history_of_the_request(
    product: Product, client: OpenAI, agent: str
) -> None:
    product.model.requests.clear()
    messages: list[Any] = [
        {"role": "system", "content": "Answer like a pirate."},
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Ahoy, Ada."},
        *ask("What is 12 * 12?"),
    ]
    reply = client.chat.completions.create(model=agent, messages=messages, temperature=0)
    assert "144" in (reply.choices[0].message.content or "")
    assert reply.usage and reply.usage.prompt_tokens > 100  # of all its calls
    first = product.model.requests[0]
    assert "Answer like a pirate." in first["messages"][0]["content"]
    assert "Ahoy, Ada." in [m["content"] for m in first["messages"]]
    assert first["temperature"] == 0
    assert not hasattr(reply, "x_steps")


def test_a_call_that_needs_approval_waits_here_too(
    product: Product, person: Person, client: OpenAI, agent: str
) -> None:
    product.execute("UPDATE tools_admin_tool SET approval = 'always' WHERE name = 'calculator'")
    try:
        with ThreadPoolExecutor(1) as pool:
            reply = pool.submit(client.chat.completions.create, model=agent, messages=ask("What is 12 * 12?"))
            (asked,) = eventually(lambda: call(product, person, "GET", "/api/v1/approvals")[1]["items"], "asked")
            calls = call(product, person, "GET", f"/api/v1/runs/{asked['run']}/calls")[1]["items"]
            assert [c for c in calls if c["kind"] == "tool"] == []
            call(product, person, "POST", f"/api/v1/approvals/{asked['id']}", {"decision": "reject"})
            assert reply.result(60).choices[0].message.content
            (made,) = [c for c in call(product, person, "GET", f"/api/v1/runs/{asked['run']}/calls")[1]["items"]
                       if c["kind"] == "tool"]  # fmt: skip
            assert made["result"]["is_error"] and "rejected" in made["result"]["content"]
    finally:
        product.execute("UPDATE tools_admin_tool SET approval = 'never' WHERE name = 'calculator'")


def test_steps_come_to_those_who_ask_for_them(client: OpenAI, agent: str) -> None:
    more = {"x_steps": True}
    reply = client.chat.completions.create(model=agent, messages=ask("What is 12 * 12?"), extra_body=more)
    steps = reply.model_extra["x_steps"]
    assert "calculator" in [step["data"].get("tool_name") for step in steps if step["channel"] == "step"]
    stream = client.chat.completions.create(model=agent, messages=ask("What is 12 * 12?"), extra_body=more, stream=True)
    text, told = "", []
    for chunk in stream:
        text += chunk.choices[0].delta.content or ""  # as ordinary clients read it
        told += chunk.model_extra.get("x_steps", [])
    assert "144" in text
    assert "calculator" in [step["data"].get("tool_name") for step in told]


@pytest.mark.parametrize("stream", [False, True])
def test_tools_of_the_client_are_called_by_the_client(product: Product, client: OpenAI, stream: bool) -> None:
    def brain(request: dict[str, Any]) -> dict[str, Any]:
        if request["messages"][-1]["role"] == "tool":
            return {"text": f"It is {request['messages'][-1]['content']}."}
        return {"calls": [{"name": "weather", "arguments": {"town": town}} for town in ("Rome", "Oslo")]}

    product.model.brain = brain
    messages = ask("How is the weather?")
    options: dict[str, Any] = {"model": ROUTE, "tools": [WEATHER], "tool_choice": "auto"}
    if stream:
        with client.chat.completions.stream(messages=messages, **options) as events:
            reply: Any = events.get_final_completion()
    else:
        reply = client.chat.completions.create(messages=messages, **options)
    choice = reply.choices[0]
    assert choice.finish_reason == "tool_calls"
    calls = choice.message.tool_calls
    assert [json.loads(call.function.arguments) for call in calls] == [{"town": "Rome"}, {"town": "Oslo"}]
    sent = [
        {"id": c.id, "type": "function", "function": c.function.model_dump(include={"name", "arguments"})}
        for c in calls
    ]
    messages.append({"role": "assistant", "content": None, "tool_calls": sent})
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in reversed(calls)]
    end = client.chat.completions.create(messages=messages, **options)
    assert end.choices[0].message.content == "It is sunny."
    assert product.model.requests[-1]["tools"][0]["function"]["name"] == "weather"


def test_structured_outputs_are_parsed(product: Product, client: OpenAI) -> None:
    class Town(BaseModel):
        name: str
        people: int

    product.model.brain = lambda _: {"text": '{"name": "Rome", "people": 3}'}
    reply = client.chat.completions.parse(model=ROUTE, messages=ask("A town"), response_format=Town)
    assert reply.choices[0].message.parsed == Town(name="Rome", people=3)
    asked = product.model.requests[-1]["response_format"]
    assert asked["json_schema"]["schema"]["required"] == ["name", "people"]


async def test_the_asynchronous_client_streams(product: Product, person: Person) -> None:
    async with AsyncOpenAI(base_url=f"{product.url}/v1", api_key=person.key, max_retries=0) as client:
        stream = await client.chat.completions.create(model=ROUTE, messages=ask("Hello"), stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        whole = await client.chat.completions.create(model=ROUTE, messages=ask("Hello"))
    assert text == whole.choices[0].message.content == "Hello! You wrote: Hello"


@pytest.mark.parametrize("stream", [False, True])
def test_closing_the_request_stops_the_run_and_the_provider(
    product: Product, person: Person, client: OpenAI, stream: bool
) -> None:
    product.model.token_delay, hung_up = 0.2, product.model.hangups
    if stream:
        answer: Any = client.chat.completions.create(model=ROUTE, messages=ask("Tell a long story"), stream=True)
        next(chunk for chunk in answer if chunk.choices[0].delta.content)
        answer.close()
    else:
        with pytest.raises(openai.APITimeoutError):
            client.with_options(timeout=2).chat.completions.create(model=ROUTE, messages=ask("Tell a long story"))
    status = "SELECT status, reason FROM conversations_run WHERE user_id = %s"
    eventually(lambda: product.sql(status, person.id) == [("cancelled", "user")], "the run is stopped")
    eventually(lambda: product.model.hangups > hung_up, "the provider sees the hang-up")


def test_a_model_that_does_not_answer_is_a_503_at_once(product: Product, person: Person, client: OpenAI) -> None:
    product.model.brain = lambda _: {"status": 500, "error": "broken"}
    with pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(model=ROUTE, messages=ask("Hello"), stream=True)
    assert (caught.value.status_code, caught.value.code) == (503, "model_unavailable")
    status = "SELECT status FROM conversations_run WHERE user_id = %s"
    eventually(lambda: product.sql(status, person.id) == [("cancelled",)], "nothing is left waiting")


def test_a_revoked_key_and_no_key_are_refused(product: Product, person: Person, client: OpenAI) -> None:
    product.execute("UPDATE accounts_apikey SET revoked_at = now() WHERE user_id = %s", person.id)
    with pytest.raises(openai.AuthenticationError) as caught:
        client.chat.completions.create(model=ROUTE, messages=ask("Hello"))
    assert caught.value.code == "invalid_api_key"


@pytest.mark.parametrize(
    ("change", "param", "words"),
    [
        ({"n": 2}, "n", "Only one choice"),
        ({"logprobs": True}, "logprobs", "leave"),
        ({"temperature": 3}, "temperature", "less than or equal to 2"),
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": [{"role": "nobody", "content": "x"}]}, "messages.0", "nobody"),
        ({"messages": [{"role": "tool", "tool_call_id": "1", "content": "x"}]}, "messages[0].role", "must follow"),
        ({"extra_body": {"functions": []}}, "functions", "Unrecognized request argument"),
        ({"response_format": {"type": "xml"}}, "response_format", "json_schema"),
        (
            {"messages": [{"role": "user", "content": [IMAGE]}]},
            "messages.0.user.content",
            "data: URLs",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_name(
    client: OpenAI, change: dict[str, Any], param: str, words: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**{"model": ROUTE, "messages": ask("Hello"), **change})
    assert str(caught.value.param).startswith(param)
    assert words in caught.value.message
    assert caught.value.type == "invalid_request_error"


def test_calls_without_results_are_refused(client: OpenAI) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages: list[Any] = [*ask("Hello"), {"role": "assistant", "content": None, "tool_calls": [call]}, *ask("So?")]
    with pytest.raises(openai.BadRequestError, match="no result: c1"):
        client.chat.completions.create(model=ROUTE, messages=messages)


@pytest.mark.parametrize("option", [{"tools": [WEATHER]}, {"stop": "x"}, {"response_format": {"type": "json_object"}}])
def test_agents_refuse_what_only_routes_can_do(client: OpenAI, agent: str, option: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError, match="ask a route"):
        client.chat.completions.create(model=agent, messages=ask("Hello"), **option)


def test_unknown_models_and_addresses_are_told_so(product: Product, person: Person, client: OpenAI) -> None:
    for model in ("gpt-9", "agent-999999", "route-nowhere", "agent-٣"):
        with pytest.raises(openai.NotFoundError) as caught:
            client.chat.completions.create(model=model, messages=ask("Hello"))
        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.NotFoundError) as caught:
        client.embeddings.create(model=ROUTE, input="x")
    assert caught.value.code == "unknown_url"


def test_the_calls_stay_out_of_the_list_but_on_record(product: Product, person: Person, client: OpenAI) -> None:
    client.chat.completions.create(model=ROUTE, messages=ask("Hello"))
    rows = "SELECT archived, title FROM conversations_conversation WHERE user_id = %s"
    assert product.sql(rows, person.id) == [(True, "Hello")]


def _said(request: dict[str, Any]) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in request["messages"]]


def _settled(product: Product, person: Person, run: str) -> dict[str, Any]:
    def ended() -> Any:
        found = call(product, person, "GET", f"/api/v1/runs/{run}")[1]
        return found if found["status"] in ("completed", "failed", "cancelled") else None

    return dict(eventually(ended, "the run has ended"))


@pytest.mark.parametrize("by", ["route", "agent"])
def test_a_page_goes_on_with_all_that_a_program_said(
    product: Product, person: Person, client: OpenAI, agent: str, by: str
) -> None:
    told: list[Any] = [
        {"role": "system", "content": "Answer like a pirate."},
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Ahoy, Ada."},
        {"role": "user", "content": [{"type": "text", "text": "Good morning"}]},
        *([{"role": "developer", "content": "Be brief."}] if by == "route" else []),
    ]
    reply = client.chat.completions.create(model=ROUTE if by == "route" else agent, messages=told, temperature=0.5)
    first = _settled(product, person, str(UUID(reply.id.removeprefix("chatcmpl-"))))
    messages = f"/api/v1/conversations/{first['conversation']}/messages"
    answer = call(product, person, "GET", messages)[1]["items"][-1]["id"]

    def asked(method: str, path: str, body: Any = None) -> list[tuple[str, str]]:
        product.model.requests.clear()
        made = call(product, person, method, path, body)[1]
        assert _settled(product, person, made.get("run") or made["id"])["status"] == "completed"
        return _said(product.model.requests[0])

    again = asked("POST", f"/api/v1/messages/{answer}/regenerate")
    assert "Answer like a pirate." in again[0][1]
    talk = [("user", "My name is Ada."), ("assistant", "Ahoy, Ada."), ("user", "Good morning")]
    assert again[1:4] == talk
    assert product.model.requests[0]["temperature"] == 0.5, "it is the same request"
    edited = asked("POST", f"/api/v1/messages/{first['message']}/edit", {"content": "Good evening"})
    assert "Answer like a pirate." in edited[0][1] and (by == "agent" or "Be brief." in edited[0][1])
    assert edited[1:] == [("user", "My name is Ada."), ("assistant", "Ahoy, Ada."), ("user", "Good evening")]
    further = asked("POST", messages, {"content": "And now?"})
    assert "Answer like a pirate." in further[0][1]
    assert further[1:4] == edited[1:] and further[-1] == ("user", "And now?")


@pytest.fixture
def route(product: Product) -> Iterator[str]:
    """A route of its own with the one model, which neither sees nor calls tools."""
    [(name,)] = product.sql(
        "INSERT INTO tools_admin_route (name, description, enabled) VALUES ('plain', '', true) RETURNING name"
    )
    [(model,)] = product.sql("UPDATE tools_admin_languagemodel SET tool_call = false RETURNING id")
    product.execute(
        "INSERT INTO tools_admin_routeentry (route_id, model_id, position, tools, images)"
        " SELECT id, %s, 0, 'any', 'any' FROM tools_admin_route WHERE name = 'plain'",
        model,
    )
    yield f"route-{name}"
    product.execute("DELETE FROM tools_admin_routeentry; DELETE FROM tools_admin_route WHERE name = 'plain'")
    product.execute("UPDATE tools_admin_languagemodel SET tool_call = true")


@pytest.mark.parametrize("which", ["plain", "general"])
def test_a_request_that_no_model_of_the_route_can_take_is_refused_in_words(
    product: Product, client: OpenAI, route: str, which: str
) -> None:
    wanted = route if which == "plain" else ROUTE
    seen = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}},
    ]
    product.model.requests.clear()
    for request, words in (
        ({"messages": [{"role": "user", "content": seen}]}, "does not see images"),
        ({"messages": ask("Hi"), "tools": [WEATHER]}, "does not call tools"),
    ):
        with pytest.raises(openai.BadRequestError, match=words) as caught:
            client.chat.completions.create(model=wanted, **request)
        assert caught.value.code == "nothing_fits"
    assert product.model.requests == [], "no other model answers in their place"
    assert client.chat.completions.create(model=wanted, messages=ask("Hi")).choices[0].message.content


def test_an_exhausted_budget_is_a_429(product: Product, person: Person, client: OpenAI) -> None:
    product.execute(
        'INSERT INTO accounts_budget (user_id, unit, period, "limit", warn_percent, used, period_start, warned)'
        " VALUES (%s, 'tokens', 'month', 1, 80, 1, now(), false)",
        person.id,
    )
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model=ROUTE, messages=ask("Hello"), stream=True)
    assert caught.value.code == "insufficient_quota"
    assert "budget" in caught.value.message
