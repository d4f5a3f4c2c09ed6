"""What a check finds out about endpoints that behave like the ones people have, quirks included."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from pydantic import SecretStr

from tests.engine.cases import cases_of
from tests.engine.fake_provider import FakeProvider, answer, serving
from tools_admin import checks
from tools_admin.checking import check_model, list_models
from tools_admin.clients import ModelClients
from tools_admin.models import LanguageModel, Provider
from tools_admin.presets import PRESETS

CASES = cases_of("provider_responses")
KEY = "sk-canary-0123456789"
Handler = Callable[[dict[str, Any], dict[str, str]], Any]


def completion(text: str | None = None, calls: list[tuple[str, str]] | None = None, **usage: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
    return {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": usage or {"prompt_tokens": 5, "completion_tokens": 3},
    }


def error(status: int, message: str, **more: Any):
    return answer(status, {"error": {"message": message, **more}})


class Endpoint(FakeProvider):
    """A model that can everything; tests take abilities away by `handle`, which may answer first."""

    handle: Handler = staticmethod(lambda request, headers: None)

    async def serve(self, reader, writer):
        self.answers = [self._reply]
        await super().serve(reader, writer)

    async def _reply(self, writer, reader):
        request, headers = self.requests[-1], self.headers[-1]
        send = self.handle(request, headers) or able(request)
        await send(writer, reader)


def able(request: dict[str, Any]):
    question = str(request["messages"][-1]["content"]) if "messages" in request else ""
    if request.get("stream"):
        return counting(with_usage="stream_options" in request)
    if request.get("tools"):
        cities = ["Paris", "Oslo"] if "Oslo" in question else ["Paris"]
        return answer(body=completion(calls=[("get_weather", json.dumps({"city": city})) for city in cities]))
    if wanted := request.get("response_format"):
        text = '{"zenith_hue": "teal-7"}' if wanted["type"] == "json_schema" else '{"colour": "blue"}'
        return answer(body=completion(text))
    return answer(body=completion("Red." if "image_url" in question else "ready"))


def counting(*, with_usage: bool = True, words: tuple[str, ...] = ("one ", "two ", "three")):
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in words]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if with_usage:
        chunks.append({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 20}})
    lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return answer(body=lines.encode(), content_type="text/event-stream")


def row(url: str, preset: str = "other", **values: Any) -> LanguageModel:
    provider = Provider(pk=1, name="Acme", preset=preset, base_url=url, api_key=SecretStr(KEY), timeout=10, **values)
    return LanguageModel(pk=1, provider=provider, name="m")


async def check(handle: Handler | None = None, preset: str = "other", **values: Any):
    """The result of a check and the endpoint that it was made of."""
    async with serving_endpoint(handle) as endpoint:
        clients = ModelClients()
        try:
            return await check_model(row(endpoint.url, preset, **values), clients), endpoint
        finally:
            await clients.aclose()


def serving_endpoint(handle: Handler | None):
    import asyncio
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def opened():
        endpoint = Endpoint()
        endpoint.handle = handle or (lambda request, headers: None)
        server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0)
        endpoint.port = server.sockets[0].getsockname()[1]
        try:
            yield endpoint
        finally:
            server.close()
            for task in endpoint.connections:
                task.cancel()

    return opened()


def abilities(result: dict[str, Any]) -> dict[str, bool | None]:
    return {name: found["ok"] for name, found in result["abilities"].items()}


async def test_a_model_that_can_everything():
    result, endpoint = await check()
    assert abilities(result) == dict.fromkeys(checks.MEASURED, True)
    assert result["first_token"] >= 0 and result["learnt"] == {}
    assert all(headers["authorization"] == f"bearer {KEY}" for headers in endpoint.headers)


@pytest.mark.parametrize("preset", PRESETS)
async def test_each_kind_of_endpoint_gets_its_key_the_way_it_wants_it(preset):
    _, endpoint = await check(preset=preset)
    headers = endpoint.headers[0]
    own = headers.get("api-key")
    assert (own, headers.get("authorization")) == ((KEY, None) if preset == "azure" else (None, f"bearer {KEY}"))
    assert not any(name.startswith("x-stainless") for name in headers)


async def test_extra_headers_carry_the_key_where_they_say_so_and_extra_bodies_are_merged():
    values = {"extra_headers": {"X-Gateway-Key": "{key}", "X-Title": "Team"}, "extra_body": {"seed": 7}}
    _, endpoint = await check(**values)
    assert (endpoint.headers[0]["x-gateway-key"], endpoint.headers[0]["x-title"]) == (KEY, "team")
    assert all(request["seed"] == 7 for request in endpoint.requests)


async def test_without_a_key_none_is_pretended():
    async with serving_endpoint(None) as endpoint:
        model = row(endpoint.url)
        model.provider.api_key = SecretStr("")
        clients = ModelClients()
        await check_model(model, clients)
        await clients.aclose()
    assert "authorization" not in endpoint.headers[0]


def no_tools(request, headers):
    return error(400, "tools are not supported", code="unsupported") if request.get("tools") else None


def one_call_only(request, headers):
    if request.get("tools"):
        return answer(body=completion(calls=[("get_weather", '{"city": "Paris"}')]))
    return None


def no_formats(request, headers):
    return error(400, "response_format is not supported") if "response_format" in request else None


def no_schema(request, headers):
    wanted = request.get("response_format") or {}
    return answer(body=completion('{"sky": "blue"}')) if wanted.get("type") == "json_schema" else None


def blind(request, headers):
    seen = "image_url" in str(request.get("messages"))
    return error(400, "this model does not take image input") if seen else None


def silent_streams(request, headers):
    return counting(words=()) if request.get("stream") else None


def no_usage(request, headers):
    return counting(with_usage=False) if request.get("stream") else None


def no_stream_options(request, headers):
    return error(400, "Unrecognized request argument supplied: stream_options") if "stream_options" in request else None


@pytest.mark.parametrize(
    ("handle", "missing"),
    [
        (no_tools, {"tool_call", "parallel_calls"}),
        (one_call_only, {"parallel_calls"}),
        (no_formats, {"json_mode", "json_schema"}),
        (no_schema, {"json_schema"}),
        (blind, {"vision"}),
        (silent_streams, {"streaming"}),
        (no_usage, {"stream_usage"}),
        (no_stream_options, {"stream_usage"}),
    ],
)
async def test_what_a_model_cannot_do_is_found_by_trying(handle, missing):
    result, _ = await check(handle)
    assert {name for name, ok in abilities(result).items() if ok is False} == missing


async def test_the_exact_error_is_shown_and_never_the_key():
    result, _ = await check(lambda request, headers: error(401, f"Incorrect API key provided: {KEY}."))
    assert result["error"] == "HTTP 401: Incorrect API key provided: [key]."
    assert KEY not in json.dumps(result)


async def test_an_attempt_that_failed_for_another_reason_says_nothing_about_the_ability():
    busy = lambda request, headers: error(429, "slow down") if request.get("tools") else None  # noqa: E731
    result, _ = await check(busy)
    assert abilities(result)["tool_call"] is None
    assert "slow down" in result["abilities"]["tool_call"]["said"]


async def test_nobody_there_is_an_error_with_words():
    clients = ModelClients()
    result = await check_model(row("http://127.0.0.1:1/v1"), clients)
    await clients.aclose()
    assert "connection failed" in result["error"]


async def test_quirks_are_learnt_so_that_runs_need_not_learn_them_again():
    def one_format(request, headers):
        content = str(request.get("messages"))
        return error(400, "roles must alternate between user and assistant") if "ready" in content else None

    result, _ = await check(one_format)
    assert "alternate" in result["error"]  # nothing to repair: there is one message
    mistral = row("http://x/v1", "mistral")
    assert mistral.abilities["short_ids"] is True
    mistral.quirks = {"short_ids": False}
    assert mistral.abilities["short_ids"] is False


LISTS = {
    "openai": ({"object": "list", "data": [{"id": "gpt", "object": "model"}]}, [("gpt", None)]),
    "gemini": ({"data": [{"id": "models/gemini-pro"}]}, [("gemini-pro", None)]),
    "openrouter": ({"data": [{"id": "a/b", "context_length": 200_000}]}, [("a/b", 200_000)]),
    "groq": ({"data": [{"id": "llama", "context_window": 131_072}]}, [("llama", 131_072)]),
    "mistral": ({"data": [{"id": "small", "max_context_length": 32_768}]}, [("small", 32_768)]),
    "vllm": ({"data": [{"id": "qwen", "max_model_len": 40_960}]}, [("qwen", 40_960)]),
    "llamacpp": ({"data": [{"id": "x.gguf", "meta": {"n_ctx_train": 32_768}}]}, [("x.gguf", 32_768)]),
    "ollama": ({"object": "list", "data": None}, "did not answer with a list"),
    "a bare list": ([{"id": "b"}, {"id": "a"}, {"no": "id"}, 7], [("a", None), ("b", None)]),
    "an error with 200": ({"error": {"message": "no such tenant"}}, "no such tenant"),
    "a page": (b"<html>Welcome</html>", "no list of models: <html>"),
    "nonsense sizes": ({"data": [{"id": "m", "context_length": "many", "max_model_len": 3}]}, [("m", None)]),
}


@pytest.mark.parametrize("kind", LISTS)
async def test_lists_of_models_are_read_in_every_shape(kind):
    body, expected = LISTS[kind]
    async with serving(answer(body=body)) as endpoint:
        clients = ModelClients()
        result = await list_models(row(endpoint.url).provider, clients)
        await clients.aclose()
    assert endpoint.paths == ["/v1/models"]
    if isinstance(expected, str):
        assert expected in result["error"]
    else:
        assert [(found["id"], found["context_size"]) for found in result["models"]] == expected


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_whatever_an_endpoint_answers_a_check_ends_with_a_result(case):
    """All recorded answers of real providers, for the list and for every attempt."""
    body = case["response"] if case.get("response") is not None else "\n".join(case["stream_lines"]).encode()
    kind = "application/json" if case.get("response") is not None else "text/event-stream"
    async with serving(answer(case["status"], body, content_type=kind)) as endpoint:
        model, clients = row(endpoint.url), ModelClients()
        listed, checked = await list_models(model.provider, clients), await check_model(model, clients)
        await clients.aclose()
    assert "error" in listed or isinstance(listed["models"], list)
    assert "error" in checked or set(checked["abilities"]) == set(checks.MEASURED)
    json.dumps([listed, checked], allow_nan=False)


@pytest.mark.django_db
def test_what_was_measured_is_entered_and_what_could_not_be_stays():
    provider = Provider.objects.create(name="Acme", base_url="https://api.example.org/v1")
    model = LanguageModel.objects.create(provider=provider, name="m", vision=True, json_schema=True)
    result = {"abilities": {"vision": {"ok": False}, "json_schema": {"ok": None}}, "learnt": {"short_ids": True}}
    checks.enter(model, result)
    model.refresh_from_db()
    assert (model.vision, model.json_schema, model.quirks) == (False, True, {"short_ids": True})


@pytest.mark.django_db
def test_a_vector_is_what_an_embedding_model_answers():
    async def measured():
        async with serving(answer(body={"data": [{"embedding": [0.1, 0.2, 0.3]}]})) as endpoint:
            model, clients = row(endpoint.url), ModelClients()
            model.kind = LanguageModel.Kind.EMBEDDING
            result = await check_model(model, clients)
            await clients.aclose()
            return result, endpoint.paths

    result, paths = async_to_sync(measured)()
    assert (result["said"], paths) == ("3 dimensions", ["/v1/embeddings"])


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254"])
async def test_a_name_that_leads_to_where_clouds_hand_out_credentials_is_refused(monkeypatch, address):
    async def look_up(host, port):
        return [address]

    monkeypatch.setattr("agentapp.addresses.look_up", look_up)
    clients = ModelClients()
    result = await check_model(row("http://models.example/v1"), clients)
    await clients.aclose()
    assert "is not an address of the public internet" in result["error"]


@pytest.mark.django_db
def test_an_unreadable_key_is_an_error_with_words(settings):
    provider = Provider.objects.create(name="Acme", base_url="https://x.example/v1", api_key=SecretStr("sk-1"))
    settings.ENCRYPTION_KEYS = ["x" * 43 + "="]
    checks.check_provider(provider.pk)
    provider.refresh_from_db()
    assert provider.last_check["error"].startswith("The key of Acme cannot be read")
