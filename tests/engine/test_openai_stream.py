"""Streamed replies: read in pieces of any size, and kind to the connection."""

import json
from itertools import pairwise

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentapp.engine import IncompleteStream, Message, ModelUnavailable, OpenAIChatModel
from agentapp.engine.openai_stream import StreamReader

from .fake_provider import serving, stream_answer, text_answer

ASK = [Message.user("Hi")]


def event(finish_reason=None, **delta):
    return "data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}) + "\n\n"


END = "data: [DONE]\n\n"
STREAM = "".join(
    [
        ": a comment\n\n",
        event(role="assistant", content=""),
        event(reasoning_content="Let me see."),
        event(content="Grüße "),
        "event: message\nid: 7\n" + event(content="an alle,\r\nand "),
        event(content="<thi").replace("\n", "\r\n"),
        event(content="nk> is a tag"),
        event("stop"),
        'data:{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}\n\n',
        END,
    ]
).encode()


def read(pieces):
    reader = StreamReader(ASK, ())
    chunks = [chunk for piece in pieces for chunk in reader.feed(piece)]
    return [*chunks, *reader.end()]


@given(st.lists(st.integers(0, len(STREAM)), max_size=30).map(sorted))
def test_a_stream_means_the_same_wherever_it_is_cut(cuts):
    edges = [0, *cuts, len(STREAM)]
    chunks = read(STREAM[start:end] for start, end in pairwise(edges))
    assert "".join(chunk.content for chunk in chunks) == "Grüße an alle,\r\nand <think> is a tag"
    assert "".join(chunk.reasoning for chunk in chunks) == "Let me see."
    assert chunks[-1].message.text == "Grüße an alle,\r\nand <think> is a tag"
    assert (chunks[-1].finish_reason, chunks[-1].usage.output_tokens) == ("stop", 7)


def test_what_came_before_an_error_is_given_out_first():
    reader = StreamReader(ASK, ())
    chunks = reader.feed((event(content="so far") + 'data: {"error":{"message":"overloaded","code":503}}\n\n').encode())
    assert next(chunks).content == "so far"
    with pytest.raises(ModelUnavailable):
        next(chunks)


def test_nothing_counts_behind_the_end():
    reader = StreamReader(ASK, ())
    list(reader.feed((event("stop", content="all") + END + event(content=" and more")).encode()))
    assert reader.done
    assert [chunk.content for chunk in reader.end()][-1:] == [""]
    assert list(reader.feed(event(content="even more").encode())) == []


def test_a_last_line_without_a_line_break_counts():
    assert read([event(content="yes").encode(), event("stop").encode().rstrip()])[-1].message.text == "yes"


@pytest.mark.parametrize("data", [b"", b": nothing\n\n", event(content="half").encode()])
def test_a_stream_without_an_end_is_incomplete(data):
    with pytest.raises(IncompleteStream):
        read([data])


@pytest.fixture
async def client_of():
    clients = []

    def make(provider, **options):
        clients.append(openai.AsyncOpenAI(base_url=provider.url, api_key="secret", max_retries=0, **options))
        return clients[-1]

    yield make
    for client in clients:
        await client.close()


async def streamed(model):
    return [chunk async for chunk in model.stream_chat(ASK)][-1].message.text


async def test_the_connection_of_a_stream_serves_the_next_request(client_of):
    lines = (event("stop", content="hello") + END).split("\n")
    async with serving(stream_answer(lines, pieces=20)) as provider:
        model = OpenAIChatModel(client_of(provider), "m")
        assert [await streamed(model) for _ in range(3)] == ["hello"] * 3
        assert len(provider.connections) == 1


async def test_a_server_that_keeps_a_finished_stream_open_is_not_waited_for(client_of):
    lines = (event("stop", content="hello") + END).split("\n")
    async with serving(stream_answer(lines, end="wait")) as provider:
        assert await streamed(OpenAIChatModel(client_of(provider), "m")) == "hello"


async def test_requests_say_what_the_client_says_but_for_its_telemetry(client_of):
    async with serving(text_answer("ok")) as provider:
        client = client_of(provider, default_headers={"X-Team": "blue"}, default_query={"v": "2"})
        await OpenAIChatModel(client, "m").chat(ASK)
    sent = provider.headers[0]
    assert (sent["authorization"], sent["x-team"], provider.paths) == (
        "bearer secret",
        "blue",
        ["/v1/chat/completions?v=2"],
    )
    assert not [name for name in sent if name.startswith("x-stainless")]
