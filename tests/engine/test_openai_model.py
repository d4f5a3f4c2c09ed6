"""`OpenAIChatModel` against a local server that answers as real providers do."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentapp.engine import (
    BadModelRequest,
    ContentFiltered,
    ContextOverflow,
    IncompleteStream,
    Message,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    OpenAIChatModel,
    ReActAgent,
    ToolCall,
)
from agentapp.engine.openai_wire import read_reply, short_id

from .cases import RECORDED, cases_of
from .fake_provider import answer, serving, stream_answer, text_answer

ASK = [Message.user("Hi")]


CASES = cases_of("provider_responses")
CLASSES = {
    "auth": ModelRefused,
    "quota": ModelRefused,
    "model_not_found": ModelRefused,
    "rate_limit": ModelUnavailable,
    "overloaded": ModelUnavailable,
    "server_error": ModelUnavailable,
    "context_overflow": ContextOverflow,
    "content_filter": ContentFiltered,
    "tool_use_failed": BadModelRequest,
    "bad_request": BadModelRequest,
    "not_a_completion": BadModelRequest,
    "provider_error_mid_stream": ModelError,
}


@pytest.fixture
async def model_at():
    """Makes models of a fake provider and closes their clients."""
    clients = []

    def make(provider, **options):
        clients.append(openai.AsyncOpenAI(api_key="secret", base_url=provider.url, max_retries=0))
        return OpenAIChatModel(clients[-1], "demo", **options)

    yield make
    for client in clients:
        await client.close()


async def streamed(model, messages=ASK, **options):
    return [chunk async for chunk in model.stream_chat(messages, **options)]


def served(case):
    if "stream_lines" in case:
        return stream_answer(case["stream_lines"], pieces=97)
    return answer(case["status"], case["response"], {k: v for k, v in case["headers"].items() if k.startswith("retry")})


async def outcome(model, case):
    if "stream_lines" not in case:
        return await model.chat(ASK)
    chunks = await streamed(model)
    message = chunks[-1].message
    assert "".join(chunk.content for chunk in chunks) == message.text
    assert "".join(chunk.reasoning for chunk in chunks) == message.reasoning
    return chunks[-1]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_recorded_responses_are_read_as_expected(case, model_at):  # E-93, E-98, E-99, C-29
    expect = case["expect"]
    async with serving(served(case)) as provider:
        model = model_at(provider)
        if "error" in expect or "refusal" in expect:
            wanted = expect.get("error", {"kind": "content_filter", "message": expect.get("refusal")})
            with pytest.raises(CLASSES[wanted["kind"]]) as caught:
                await outcome(model, case)
            error: Any = caught.value
            assert (wanted.get("message") or "") in error.message
            assert isinstance(error, ModelUnavailable) is wanted.get("retryable", False)
            if "wait_hint_s" in wanted:
                assert error.retry_after == pytest.approx(wanted["wait_hint_s"])
            return
        reply = await outcome(model, case)
    message = reply.message
    if not expect["content"].startswith("<think>"):
        assert message.text.strip() == expect["content"].strip()
        assert bool(message.reasoning) is expect["reasoning"]
    else:
        assert "<think>" not in message.text
        assert message.reasoning
    assert [(c.name, c.arguments, c.invalid) for c in message.tool_calls] == [
        (c["name"], c["arguments"], None) for c in expect["tool_calls"]
    ]
    assert [c.id for c in message.tool_calls] == [c["id"] or "" for c in expect["tool_calls"]]
    if expect["finish_reason"]:
        assert reply.finish_reason == expect["finish_reason"]
    for name in ("cached_tokens", "reasoning_tokens"):
        assert getattr(reply.usage, name) == (expect.get(name) or getattr(reply.usage, name))
    assert reply.usage.estimated is (expect.get("usage_total") is None)


def test_recorded_responses_are_here():
    if not (RECORDED / "provider_responses").exists():
        pytest.skip("recorded answers of providers are not here; only our own cases ran")
    assert len(CASES) > 60


async def test_the_request_holds_what_was_asked_for(model_at):
    tools = ({"type": "function", "function": {"name": "echo", "description": "", "parameters": {}}},)
    history = [
        Message.system("s"),
        Message.user("q", pinned=True),
        Message("assistant", "", tool_calls=[ToolCall("c1", "echo", {"a": 1}, extra={"sig": "x"})], reasoning="hm"),
        Message.tool("c1", "half an emoji \ud83d"),
    ]
    async with serving(text_answer("ok")) as provider:
        model = model_at(provider, extra={"temperature": 0})
        await model.chat(history, tools=tools, tool_choice="auto", response_format={"type": "json_object"})
    request = provider.requests[0]
    assert (request["model"], request["temperature"], request["tools"]) == ("demo", 0, list(tools))
    assert (request["tool_choice"], request["response_format"]) == ("auto", {"type": "json_object"})
    assert "stream" not in request
    assert provider.headers[0]["authorization"] == "bearer secret"
    _system, user, assistant, result = request["messages"]
    assert user == {"role": "user", "content": "q"}
    assert assistant["content"] is None
    assert "reasoning_content" not in assistant
    assert assistant["tool_calls"] == [
        {"sig": "x", "id": "c1", "type": "function", "function": {"name": "echo", "arguments": '{"a":1}'}}
    ]
    assert result["content"] == "half an emoji ?"


async def test_tool_call_data_of_a_provider_goes_back_byte_for_byte(model_at):  # E-92, C-24
    signature = {"google": {"thought_signature": "AbC+/=="}}
    call = {"id": "", "function": {"name": "echo", "arguments": "{}"}, "extra_content": signature}
    async with serving(text_answer(None, tool_calls=[call]), text_answer("done")) as provider:
        model = model_at(provider)
        reply = (await model.chat(ASK)).message
        stored = Message.from_dict(json.loads(json.dumps(reply.to_dict())))
        await model.chat([*ASK, stored])
    assert provider.requests[1]["messages"][1]["tool_calls"][0]["extra_content"] == signature


@pytest.mark.parametrize("echo", [True, False])
async def test_reasoning_goes_back_only_to_providers_that_want_it(model_at, echo):  # E-91, C-23
    """The endpoint answers 400 the first time; the model learns from it."""
    refusal = answer(400, {"error": {"message": "messages[1].reasoning_content is wrong"}})
    history = [
        *ASK,
        Message("assistant", "", tool_calls=[ToolCall("1", "echo", {})], reasoning="because"),
        Message.tool("1", "ok"),
    ]
    async with serving(refusal, text_answer("ok")) as provider:
        await model_at(provider, abilities={"echo_reasoning": not echo}).chat(history)
    sent = [("reasoning_content" in request["messages"][1]) for request in provider.requests]
    assert sent == [not echo, echo]


async def test_refused_stream_options_are_left_out_from_then_on(model_at):  # E-94, C-26
    refusal = answer(400, {"error": {"message": "unknown field stream_options"}})
    lines = ['data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}', "", "data: [DONE]", ""]
    async with serving(refusal, stream_answer(lines)) as provider:
        chunks = await streamed(model_at(provider))
    assert ["stream_options" in request for request in provider.requests] == [True, False]
    assert chunks[-1].usage.estimated


async def test_a_plain_bad_request_is_not_sent_again(model_at):  # E-85, C-27
    async with serving(answer(400, {"error": {"message": "no"}})) as provider:
        with pytest.raises(BadModelRequest):
            await model_at(provider).chat(ASK)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after-ms": "250"}, 0.25),
        ({"Retry-After": "in an hour, as a date"}, 3_600),
        ({"Retry-After": "soon"}, None),
    ],
)
async def test_retry_after_is_read_in_all_forms(model_at, headers, seconds):  # E-85, C-27
    if seconds == 3_600:
        headers = {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)}
    async with serving(answer(429, {"error": {"message": "slow down"}}, headers)) as provider:
        with pytest.raises(ModelUnavailable) as caught:
            await model_at(provider).chat(ASK)
    assert caught.value.retry_after == (
        None if seconds is None else pytest.approx(seconds, abs=120 if seconds > 60 else 0)
    )


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (408, {"message": "timeout"}, ModelUnavailable),
        (429, {"message": "limit of 4000 tokens per minute exceeds the maximum"}, ModelUnavailable),
        (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}, ModelRefused),
        (402, {"message": "pay"}, ModelRefused),
        (413, {"message": "big"}, ContextOverflow),
        (422, {"message": "no"}, BadModelRequest),
        (400, {"message": "filtered", "code": "content_filter"}, ContentFiltered),
    ],
)
async def test_statuses_have_their_class(model_at, status, error, expected):  # E-85, C-13, C-27
    async with serving(answer(status, {"error": error})) as provider:
        with pytest.raises(expected) as caught:
            await model_at(provider).chat(ASK)
    assert type(caught.value) is expected


async def test_a_page_of_html_is_no_completion(model_at):
    page = answer(200, b"<html>Sign in</html>", content_type="text/html")
    async with serving(page) as provider:
        for call in (model_at(provider).chat(ASK), streamed(model_at(provider))):
            with pytest.raises(BadModelRequest, match="Sign in"):
                await call


async def test_a_server_that_is_down_is_unavailable(model_at):
    async with serving(text_answer("x")) as provider:
        pass
    with pytest.raises(ModelUnavailable):
        await model_at(provider).chat(ASK)


CONTENT = ['data: {"choices":[{"delta":{"content":"half"}}]}', ""]


@pytest.mark.parametrize("end", ["cut", "close"])
async def test_a_stream_without_an_end_is_incomplete(model_at, end):
    async with serving(stream_answer(CONTENT, end=end)) as provider:
        with pytest.raises(IncompleteStream):
            await streamed(model_at(provider))


async def test_a_stream_that_only_says_done_is_complete(model_at):
    async with serving(stream_answer([*CONTENT, "data: [DONE]", ""])) as provider:
        chunks = await streamed(model_at(provider))
    assert (chunks[-1].message.text, chunks[-1].finish_reason) == ("half", "stop")


async def test_cancelling_closes_the_connection_at_once(model_at):
    async with serving(stream_answer(CONTENT, end="wait")) as provider:
        stream = model_at(provider).stream_chat(ASK)
        assert (await anext(stream)).content == "half"
        reading = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.wait_for(provider.hung_up.wait(), 1)


async def test_cancelling_a_plain_call_closes_the_connection_too(model_at):
    arrived = asyncio.Event()

    async def never(writer, reader):
        arrived.set()
        await reader.readexactly(1)

    async with serving(never) as provider:
        call = asyncio.create_task(model_at(provider).chat(ASK))
        await asyncio.wait_for(arrived.wait(), 2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(provider.hung_up.wait(), 1)


def deltas(*pieces):
    lines = [f"data: {json.dumps({'choices': [{'delta': {'tool_calls': [piece]}}]})}" for piece in pieces]
    return stream_answer([*lines, "data: [DONE]"])


def piece(call_id=None, name=None, arguments=None, index=None):
    function = {"name": name, "arguments": arguments}
    data = {"id": call_id, "index": index, "function": {k: v for k, v in function.items() if v is not None}}
    return {k: v for k, v in data.items() if v is not None}


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([piece("a", "f", '{"x":1}', 0), piece("b", "f", '{"x":2}', 0)], [("a", {"x": 1}), ("b", {"x": 2})]),
        ([piece("a", "f", '{"x"'), piece(None, None, ":1}"), piece("b", "g", "{}")], [("a", {"x": 1}), ("b", {})]),
        ([piece("a", "f", '{"x":1}', 0), piece("a", "f", '{"x":2}', 0)], [("a", {"x": 1}), ("a", {"x": 2})]),
        ([piece("", "f", '{"x":1}'), piece("", "f", '{"x":2}')], [("", {"x": 1}), ("", {"x": 2})]),
        ([piece("a", "f", '{"x"', 0), piece("", "f", ":1}", 0)], [("a", {"x": 1})]),
        (
            [
                piece("a", "f", '{"x":', 0),
                piece("b", "g", '{"y":', 1),
                piece(None, None, "1}", 0),
                piece(None, None, "2}", 1),
            ],
            [("a", {"x": 1}), ("b", {"y": 2})],
        ),
    ],
)
async def test_streamed_calls_are_told_apart(model_at, pieces, calls):  # E-93, C-20
    async with serving(deltas(*pieces)) as provider:
        message = (await streamed(model_at(provider)))[-1].message
    assert [(call.id, call.arguments) for call in message.tool_calls] == calls


@pytest.mark.parametrize("arguments", ["", "null", "{}", None, {}, '"{}"'])
async def test_empty_arguments_are_an_empty_object(model_at, arguments):  # E-93, C-19
    call = {"id": "1", "function": {"name": "f", "arguments": arguments}}
    async with serving(text_answer(None, tool_calls=[call])) as provider:
        message = (await model_at(provider).chat(ASK)).message
    assert message.tool_calls[0] == ToolCall("1", "f", {})


@pytest.mark.parametrize("arguments", ['{"a":1,', "[1]", '"text"', "NaN", '{"a": NaN}'])
async def test_arguments_that_are_no_object_are_kept_as_text(model_at, arguments):
    call = {"id": "1", "function": {"name": "f", "arguments": arguments}}
    async with serving(text_answer(None, tool_calls=[call])) as provider:
        message = (await model_at(provider).chat(ASK)).message
    assert (message.tool_calls[0].arguments, message.tool_calls[0].invalid) == ({}, arguments)


@pytest.mark.parametrize(
    ("text", "answer_text", "reasoning"),
    [
        ("<think>a < b</think>\n\nYes.", "Yes.", "a < b"),
        ("<think>never closed", "", "never closed"),
        ("stray</think> end", "stray end", ""),
        ("The tag <think> starts it.", "The tag <think> starts it.", ""),
        ("1 < 2", "1 < 2", ""),
    ],
)
async def test_think_blocks_are_reasoning_however_they_are_cut(model_at, text, answer_text, reasoning):  # E-90, C-28
    for size in (1, 2, 3, 100):
        parts = [text[i : i + size] for i in range(0, len(text), size)]
        lines = [f"data: {json.dumps({'choices': [{'delta': {'content': part}}]})}" for part in parts]
        async with serving(stream_answer([*lines, "data: [DONE]"]), text_answer(text)) as provider:
            chunks = await streamed(model_at(provider))
            plain = (await model_at(provider).chat(ASK)).message
        assert "".join(chunk.content for chunk in chunks) == answer_text
        assert chunks[-1].message == plain == Message("assistant", answer_text, reasoning=reasoning)


async def test_a_whole_run_over_http(model_at, add):
    call = {"id": "c", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}
    lines = ['data: {"choices":[{"delta":{"content":"Five."},"finish_reason":"stop"}]}', "", "data: [DONE]", ""]
    async with serving(text_answer(None, tool_calls=[call]), text_answer("It is 5."), stream_answer(lines)) as provider:
        agent = ReActAgent(model_at(provider), [add])
        result = await agent.run("2 + 3?")
        pieces = [piece async for piece in agent.stream_answer("2 + 3?", result)]
    assert (result.answer, "".join(pieces), result.delivered) == ("It is 5.", "Five.", "Five.")
    assert provider.requests[1]["messages"][-1] == {"role": "tool", "content": "5", "tool_call_id": "c"}


LEAK = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'


@pytest.mark.parametrize("size", [1, 4, 200])
async def test_a_call_that_leaks_into_text_is_a_call_and_never_shown(model_at, add, size):  # E-96, C-22
    text = f"Let me see. {LEAK}"
    parts = [text[i : i + size] for i in range(0, len(text), size)]
    lines = [f"data: {json.dumps({'choices': [{'delta': {'content': part}}]})}" for part in parts]
    tools = (add.definition,)
    async with serving(stream_answer([*lines, "data: [DONE]"]), text_answer(text)) as provider:
        chunks = await streamed(model_at(provider), tools=tools)
        plain = (await model_at(provider).chat(ASK, tools=tools)).message
    assert "".join(chunk.content for chunk in chunks) == "Let me see. "
    assert chunks[-1].message == plain
    assert [(call.name, call.arguments) for call in plain.tool_calls] == [("add", {"a": 2, "b": 3})]


async def test_an_answer_that_is_json_arrives_whole(model_at, add):
    lines = [f"data: {json.dumps({'choices': [{'delta': {'content': part}}]})}" for part in ('{"a"', ": 1}")]
    async with serving(stream_answer([*lines, "data: [DONE]"])) as provider:
        chunks = await streamed(model_at(provider), tools=(add.definition,))
    assert "".join(chunk.content for chunk in chunks) == chunks[-1].message.text == '{"a": 1}'


async def test_markup_that_cannot_be_read_is_asked_for_again(model_at, add):  # E-96, C-22
    async with serving(text_answer('<tool_call>{"name": "add", "argu'), text_answer("It is 5.")) as provider:
        result = await ReActAgent(model_at(provider), [add]).run("2 + 3?")
    assert (result.answer, result.iterations) == ("It is 5.", 2)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["message", "delta", "content", "tool_calls", "function", "arguments", "id", "usage", "name", "error"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JUNK, max_size=2), JUNK)
def test_answers_of_any_form_raise_model_errors_only(choices, usage):  # E-98
    body = json.dumps({"choices": choices, "usage": usage}).encode()
    try:
        completion = read_reply(body, {}).completion(ASK, ())
    except ModelError:
        return
    assert isinstance(completion.message.text, str)


@pytest.mark.parametrize("known", [True, False])
async def test_ids_are_shortened_for_endpoints_that_want_it(model_at, known):  # E-95, C-25
    refusal = {"message": "Tool call id was x but must be a-z, A-Z, 0-9, with a length of 9."}
    history = [*ASK, Message.assistant("", [ToolCall("call_1_0", "echo", {})]), Message.tool("call_1_0", "ok")]
    answers = [text_answer("ok")] if known else [answer(400, {"error": refusal}), text_answer("ok")]
    async with serving(*answers) as provider:
        await model_at(provider, abilities={"short_ids": known}).chat(history)
    _, call, result = provider.requests[-1]["messages"]
    assert call["tool_calls"][0]["id"] == result["tool_call_id"]
    assert len(result["tool_call_id"]) == 9
    assert result["tool_call_id"].isalnum()


def test_short_ids_do_not_collide():  # E-95, C-25
    assert len({short_id(f"call_with_a_common_prefix_{n}") for n in range(200)}) == 200


async def test_messages_of_one_role_are_merged_for_endpoints_that_want_it(model_at):  # E-67
    history = [
        Message.user("a"),
        Message.user("b"),
        Message.assistant("", [ToolCall("1", "f", {})]),
        Message.tool("1", "r"),
    ]
    async with serving(text_answer("ok")) as provider:
        await model_at(provider, abilities={"merge_roles": True}).chat(history)
    assert [m["content"] for m in provider.requests[0]["messages"]] == ["a\n\nb", None, "r"]


async def test_missing_usage_is_estimated_from_the_request(model_at):  # E-94, C-26
    silent = answer(body={"choices": [{"message": {"content": "x" * 40}}]})
    async with serving(silent) as provider:
        usage = (await model_at(provider).chat([Message.user("y" * 400)])).usage
    assert (usage.estimated, usage.input_tokens, usage.output_tokens) == (True, 104, 14)


# Endpoints with their own ways


@pytest.mark.parametrize("bound", [False, True])
async def test_azure_is_addressed_by_deployment_and_version(bound):
    async with serving(text_answer("ok")) as provider:
        origin = provider.url.removesuffix("/v1")
        client = openai.AsyncAzureOpenAI(
            azure_endpoint=origin,
            api_version="2024-10-21",
            api_key="secret",
            max_retries=0,
            **{"azure_deployment": "demo"} if bound else {},
        )
        assert (await OpenAIChatModel(client, "demo").chat(ASK)).message.text == "ok"
        await client.close()
    assert provider.paths == ["/openai/deployments/demo/chat/completions?api-version=2024-10-21"]
    assert provider.headers[0]["api-key"] == "secret"


async def test_a_token_that_changes_is_used_from_then_on():
    tokens, seen = [], []
    async with serving(text_answer("ok")) as provider:
        client = openai.AsyncAzureOpenAI(
            azure_endpoint=provider.url, api_version="1", azure_ad_token_provider=lambda: tokens[-1], max_retries=0
        )
        model = OpenAIChatModel(client, "demo")
        for token in ("one", "two"):
            tokens.append(token)
            await model.chat(ASK)
            seen.append(provider.headers[-1]["authorization"])
        await client.close()
    assert seen == ["bearer one", "bearer two"]


TURN = Message.assistant("", [ToolCall("1", "f", {})]), Message.tool("1", "r")


async def test_endpoints_that_want_alternating_roles_get_them(model_at):  # E-67
    refusal = answer(400, {"error": {"message": "Conversation roles must alternate user/assistant/user"}})
    async with serving(refusal, text_answer("ok")) as provider:
        await model_at(provider).chat([Message.user("a"), Message.user("b"), *TURN])
    assert [len(request["messages"]) for request in provider.requests] == [4, 3]


async def test_a_refused_reply_format_is_left_out_from_then_on(model_at):
    refusal = answer(400, {"error": {"message": "'response_format' of type json_schema is not supported"}})
    async with serving(refusal, text_answer("{}")) as provider:
        model = model_at(provider)
        for _ in range(2):
            await model.chat(ASK, response_format={"type": "json_schema"})
    assert ["response_format" in request for request in provider.requests] == [True, False, False]


async def test_an_unsupported_parameter_is_repaired_once(model_at):
    renamed = answer(400, {"error": {"message": "Use 'max_completion_tokens' instead of 'max_tokens'"}})
    unknown = answer(400, {"error": {"message": "Unsupported parameter: 'top_k'"}})
    for refusal, left in ((renamed, {"max_completion_tokens": 9, "top_k": 1}), (unknown, {"max_tokens": 9})):
        async with serving(refusal, text_answer("ok")) as provider:
            await model_at(provider, extra={"max_tokens": 9, "top_k": 1}).chat(ASK)
        sent = provider.requests[1]
        assert {name: sent[name] for name in ("max_tokens", "max_completion_tokens", "top_k") if name in sent} == left


async def test_a_forced_choice_is_not_sent_without_tools(model_at, add):  # E-11
    async with serving(text_answer("ok")) as provider:
        model = model_at(provider, extra={"tool_choice": "required", "parallel_tool_calls": False})
        await model.chat(ASK, tools=(add.definition,), tool_choice="auto")
        await model.chat(ASK)
    assert [request.get("tool_choice") for request in provider.requests] == ["auto", None]
    assert "parallel_tool_calls" not in provider.requests[1]


async def test_too_many_tools_are_refused_before_anything_is_sent(model_at, add):  # E-97, C-16
    async with serving(text_answer("ok")) as provider:
        with pytest.raises(BadModelRequest, match="129 tools"):
            await model_at(provider).chat(ASK, tools=(add.definition,) * 129)
    assert provider.requests == []


async def test_the_output_limit_is_not_sent_on_its_own(model_at):
    async with serving(text_answer("ok")) as provider:
        await model_at(provider, max_output_tokens=500).chat(ASK)
    assert set(provider.requests[0]) == {"model", "messages"}


FAILED_CALL = answer(400, {"error": {"message": "Failed to call a function", "code": "tool_use_failed"}})


async def test_a_call_that_the_server_could_not_read_is_asked_for_once_more(model_at, add):  # E-96
    async with serving(FAILED_CALL, text_answer("It is 5.")) as provider:
        result = await ReActAgent(model_at(provider), [add]).run("2 + 3?")
    assert (result.answer, result.iterations) == ("It is 5.", 1)
    assert "could not be read" in provider.requests[1]["messages"][-1]["content"]
    assert not any("could not be read" in message.text for message in result.messages)


async def test_a_call_that_cannot_be_read_twice_ends_the_run(model_at, add):
    async with serving(FAILED_CALL) as provider:
        with pytest.raises(BadModelRequest):
            await ReActAgent(model_at(provider), [add]).run("2 + 3?")
    assert len(provider.requests) == 2


async def test_malformed_arguments_never_go_back_to_the_provider(model_at, add):  # E-33, C-17, C-18
    """An endpoint that refuses such a history takes the second turn."""
    broken = {"id": "c", "function": {"name": "add", "arguments": '{"a":1,'}}

    async def strict(writer, reader):
        calls = [c for m in provider.requests[-1]["messages"] for c in m.get("tool_calls") or ()]
        whole = all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)
        await (text_answer("ok") if whole else answer(400, {"error": {"message": "bad history"}}))(writer, reader)

    async with serving(text_answer(None, tool_calls=[broken]), strict) as provider:
        result = await ReActAgent(model_at(provider), [add]).run("q")
    assert (result.answer, result.messages[2].tool_calls[0].invalid) == ("ok", '{"a":1,')


async def test_a_streamed_reply_is_the_same_as_a_plain_one(model_at):  # C-30
    call = {"id": "c", "function": {"name": "f", "arguments": '{"text": "hä\\n", "n": [1, 2.5, null]}'}}
    arguments = call["function"]["arguments"]
    for size in (1, 5, 100):
        first = {"id": "c", "index": 0, "function": {"name": "f", "arguments": ""}}
        parts = [piece(None, None, arguments[i : i + size], 0) for i in range(0, len(arguments), size)]
        async with serving(text_answer("", tool_calls=[call]), deltas(first, *parts)) as provider:
            model = model_at(provider)
            plain = (await model.chat(ASK)).message
            assert (await streamed(model))[-1].message == plain


async def test_markup_of_calls_never_shows_in_a_reply_without_tools(model_at):  # E-96
    lines = [
        f"data: {json.dumps({'choices': [{'delta': {'content': part}}]})}" for part in ("Well. ", LEAK[:20], LEAK[20:])
    ]
    async with serving(stream_answer([*lines, "data: [DONE]"]), text_answer(f"Well. {LEAK}")) as provider:
        chunks = await streamed(model_at(provider))
        plain = (await model_at(provider).chat(ASK)).message
    assert "".join(chunk.content for chunk in chunks) == plain.text == chunks[-1].message.text == "Well. "
    assert plain.tool_calls == ()


@pytest.mark.parametrize(
    ("name", "sent"), [("look up!", "look_up_"), ("", "unknown"), ("n" * 90, "n" * 64), ("a.b-c:d", "a.b-c:d")]
)
async def test_names_that_no_provider_takes_are_not_sent_back(model_at, name, sent):  # E-98
    history = [*ASK, Message.assistant("", [ToolCall("1", name, {})]), Message.tool("1", "no such tool")]
    async with serving(text_answer("ok")) as provider:
        await model_at(provider).chat(history)
    assert provider.requests[0]["messages"][1]["tool_calls"][0]["function"]["name"] == sent


@pytest.mark.parametrize("call_id", ["", "x"])
async def test_equal_calls_of_a_plain_reply_are_two_calls(model_at, call_id):  # E-30, C-14
    call = {"id": call_id, "function": {"name": "f", "arguments": ""}}
    async with serving(text_answer(None, tool_calls=[call, call])) as provider:
        message = (await model_at(provider).chat(ASK)).message
    assert message.tool_calls == (ToolCall(call_id, "f", {}),) * 2


async def test_an_endpoint_that_repeats_the_key_does_not_put_it_on_record():
    refusal = {"error": {"message": "Incorrect API key provided: sk-canary-0123. Find yours elsewhere."}}
    async with serving(answer(401, refusal)) as provider:
        client = openai.AsyncOpenAI(base_url=provider.url, api_key="sk-canary-0123", max_retries=0)
        with pytest.raises(ModelRefused, match=r"provided: \[key\]\."):
            await OpenAIChatModel(client, "m").chat([Message.user("q")])
        await client.close()


async def test_further_options_win_over_a_models_own():
    async with openai.AsyncOpenAI(api_key="secret", base_url="http://localhost") as client:
        model = OpenAIChatModel(client, "demo", extra={"temperature": 1, "max_tokens": 9, "seed": 1})
        other = model.with_extra({"temperature": 0, "max_completion_tokens": 5})
    assert other._extra == {"temperature": 0, "max_completion_tokens": 5, "seed": 1}
    assert model._extra == {"temperature": 1, "max_tokens": 9, "seed": 1}
