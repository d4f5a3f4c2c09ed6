"""A model named by its endpoint, without the vendor's client."""

import httpx2
import pytest

from agentapp.engine import Message, ModelError, ModelRefused, OpenAIChatModel
from agentapp.engine.openai_endpoint import Endpoint

from .fake_provider import answer, serving, stream_answer, text_answer

ASK = [Message.user("Hi")]


async def test_requests_go_to_the_address_with_the_headers_it_was_given_once_each():
    async with serving(text_answer("ok")) as provider, httpx2.AsyncClient(headers={"User-Agent": "us"}) as http:
        endpoint = Endpoint.at(http, f"{provider.url}/", {"Api-Key": "grüße", "accept": "text/plain"}, "grüße")
        reply = await OpenAIChatModel(endpoint, "m").chat(ASK)
    assert reply.message.text == "ok"
    assert provider.paths == ["/v1/chat/completions"]
    assert provider.requests[0]["model"] == "m"
    sent = provider.headers[0]
    told = {name: sent[name] for name in ("api-key", "accept", "content-type", "user-agent")}
    assert told == {"api-key": "grüße", "accept": "text/plain", "content-type": "application/json", "user-agent": "us"}
    assert int(sent["content-length"]) > 0
    assert "authorization" not in sent


async def test_the_clients_time_limits_hold():
    limits = httpx2.Timeout(30, read=0.05)
    async with serving(stream_answer([], end="wait")) as provider, httpx2.AsyncClient(timeout=limits) as http:
        endpoint = Endpoint.at(http, provider.url, {}, "")
        assert endpoint.extensions == {"timeout": limits.as_dict()}
        with pytest.raises(ModelError, match="ReadTimeout"):
            [chunk async for chunk in OpenAIChatModel(endpoint, "m").stream_chat(ASK)]


async def test_its_key_is_not_repeated_by_an_error():
    refusal = {"error": {"message": "Incorrect API key provided: sk-canary-0123."}}
    async with serving(answer(401, refusal)) as provider, httpx2.AsyncClient() as http:
        endpoint = Endpoint.at(http, provider.url, {"Authorization": "Bearer sk-canary-0123"}, "sk-canary-0123")
        with pytest.raises(ModelRefused, match=r"provided: \[key\]\."):
            await OpenAIChatModel(endpoint, "m").chat(ASK)
