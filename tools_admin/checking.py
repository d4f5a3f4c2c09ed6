"""Asking an endpoint what it has and what it can do, by really trying: nothing here is looked up in a table.

Results are plain JSON values, kept with the row (`last_check`) and shown in the admin.
"""

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from agentapp.engine import Message, ModelError, ModelUnavailable, OpenAIChatModel, Usage, extract_json
from agentapp.engine.openai_errors import error_object, error_of_response, without_secret
from tools_admin.clients import ModelClients, chat_model, headers_of
from tools_admin.knowledge.embedding import NoVectors, embed
from tools_admin.models import LanguageModel, Provider

Found = tuple[bool, str]  # whether the model can, and what it did
MOST_MODELS = 2_000

_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
# A schema that no model would follow by chance.
_SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "sky",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"zenith_hue": {"type": "string", "enum": ["teal-7", "teal-8"]}},
            "required": ["zenith_hue"],
            "additionalProperties": False,
        },
    },
}
# 32 × 32 pixels, all of them pure red.
_RED = (
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7hIASyp6lTCQQCgUAgEAgEgi/B"
    "AjLD/C5w/SM9AAAAAElFTkSuQmCC"
)


async def list_models(provider: Provider, clients: ModelClients) -> dict[str, Any]:
    """`{"seconds", "models": [{"id", "context_size"}]}`, or `{"seconds", "error"}` with the endpoint's own words."""
    http = clients.get(provider).http
    began = time.perf_counter()
    try:
        response = await http.get(f"{provider.base_url.rstrip('/')}/models", headers=headers_of(provider))
        if response.status_code >= 300:
            raise error_of_response(response.status_code, response.headers, _safe(response.content, provider))
        models = _read_list(response.content)
    except (ModelError, http_errors()) as error:
        return {"seconds": _since(began), "error": words(error)}
    return {"seconds": _since(began), "models": models}


async def check_model(row: LanguageModel, clients: ModelClients) -> dict[str, Any]:
    """`{"seconds", "first_token", "abilities": {name: {"ok", "seconds", "said"}}, "learnt"}`, or `{"error"}` when it
    does not even answer. `ok` is None where an attempt failed for another reason than the model's inability."""
    model = chat_model(row, clients)
    began = time.perf_counter()
    if row.kind == LanguageModel.Kind.EMBEDDING:
        return await _check_embedding(row, clients, began)
    try:
        reply = await model.chat([Message.user("Reply with the single word: ready")])
    except ModelError as error:
        return {"seconds": _since(began), "error": words(error)}
    result: dict[str, Any] = {"seconds": _since(began), "said": reply.message.text[:100], "abilities": {}}
    for names, attempt in _ATTEMPTS:
        result["abilities"].update(await _tried(names, attempt, model, result))
    result["learnt"] = {name: value for name, value in model.learnt.items() if name != "stream_usage"}
    return result


async def _tried(
    names: tuple[str, ...],
    attempt: Callable[[OpenAIChatModel, dict[str, Any]], Awaitable[tuple[Found, ...]]],
    model: OpenAIChatModel,
    result: dict[str, Any],
) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        found: tuple[tuple[bool | None, str], ...] = await attempt(model, result)
    except ModelUnavailable as error:
        # It has just answered: some servers send 500 for what they do not support.
        ok = False if error.status in (500, 501) else None
        found = ((ok, words(error)),) * len(names)
    except ModelError as error:
        found = ((False, words(error)),) * len(names)
    seconds = _since(began)
    rows = zip(names, found, strict=True)
    return {name: {"ok": ok, "seconds": seconds, "said": said[:500]} for name, (ok, said) in rows}


async def _streaming(model: OpenAIChatModel, result: dict[str, Any]) -> tuple[Found, Found]:
    began, pieces, usage = time.perf_counter(), 0, Usage(estimated=True)
    async for chunk in model.stream_chat([Message.user("Count from one to twenty in words.")]):
        if chunk.content:
            if not pieces:
                result["first_token"] = _since(began)
            pieces += 1
        usage = chunk.usage or usage
    told = not usage.estimated
    return (pieces > 0, f"{pieces} pieces"), (told, f"{usage.output_tokens} output tokens" if told else "no usage")


async def _tool_call(model: OpenAIChatModel, _: dict[str, Any]) -> tuple[Found]:
    asked = [Message.user("What is the weather in Paris? Use the tool.")]
    reply = (await model.chat(asked, tools=[_WEATHER], tool_choice="auto")).message
    named = [call for call in reply.tool_calls if call.name == "get_weather" and "city" in call.arguments]
    return ((bool(named), _said(reply)),)


async def _parallel_calls(model: OpenAIChatModel, _: dict[str, Any]) -> tuple[Found]:
    asked = [Message.user("What is the weather in Paris and in Oslo? Call the tool for both cities at once.")]
    reply = (await model.chat(asked, tools=[_WEATHER], tool_choice="auto")).message
    return ((len({str(call.arguments.get("city")) for call in reply.tool_calls}) > 1, _said(reply)),)


async def _json_mode(model: OpenAIChatModel, _: dict[str, Any]) -> tuple[Found]:
    asked = [Message.user('Describe the sky as a JSON object with the key "colour".')]
    reply = (await model.chat(asked, response_format={"type": "json_object"})).message
    return ((_kept_format(model) and _is_object(reply.text), _said(reply)),)


async def _json_schema(model: OpenAIChatModel, _: dict[str, Any]) -> tuple[Found]:
    model.refused.discard("response_format")
    asked = [Message.user("Which colour has the sky? Reply in JSON.")]
    reply = (await model.chat(asked, response_format=_SCHEMA)).message
    followed = str((extract_json(reply.text) or {}).get("zenith_hue")).startswith("teal-")
    return ((_kept_format(model) and followed, _said(reply)),)


async def _vision(model: OpenAIChatModel, _: dict[str, Any]) -> tuple[Found]:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_RED}"}}
    text = {"type": "text", "text": "Which colour has this image? Reply with one word."}
    reply = (await model.chat([Message.user([text, image])])).message
    return (("red" in reply.text.lower(), _said(reply)),)


_ATTEMPTS: tuple[tuple[tuple[str, ...], Any], ...] = (
    (("streaming", "stream_usage"), _streaming),
    (("tool_call",), _tool_call),
    (("parallel_calls",), _parallel_calls),
    (("json_mode",), _json_mode),
    (("json_schema",), _json_schema),
    (("vision",), _vision),
)


async def _check_embedding(row: LanguageModel, clients: ModelClients, began: float) -> dict[str, Any]:
    try:
        size = len((await embed(row, ["ready"], clients)).vectors[0])
    except NoVectors as error:
        return {"seconds": _since(began), "error": str(error)}
    return {"seconds": _since(began), "said": f"{size} dimensions", "abilities": {}}


def _safe(body: bytes, provider: Provider) -> bytes:
    return without_secret(body, provider.api_key.get_secret_value())


def http_errors() -> type[Exception]:
    import httpx2

    return httpx2.HTTPError


def words(error: Exception) -> str:
    """The exact error, as the endpoint put it, with its status."""
    status = getattr(error, "status", None)
    return f"{f'HTTP {status}: ' if status else ''}{str(error) or type(error).__name__}"[:1_000]


def _read_list(body: bytes) -> list[dict[str, Any]]:
    """Ids, and how much context a model has where the list tells it: each kind of server names that differently."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        beginning = body[:100].decode("utf-8", "replace")
        raise ModelError(f"This is no list of models: {beginning}") from None
    rows = value.get("data") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        problem = error_object(value) or {}
        raise ModelError(str(problem.get("message") or "The endpoint did not answer with a list of models."))
    named = [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str) and row["id"]]
    found = {row["id"].removeprefix("models/"): _context_size(row) for row in named}
    return [{"id": name, "context_size": size} for name, size in sorted(found.items())][:MOST_MODELS]


def _context_size(row: dict[str, Any]) -> int | None:
    meta = row.get("meta") if isinstance(row.get("meta"), dict) else {}
    told = [
        *(row.get(name) for name in ("context_length", "context_window", "max_context_length", "max_model_len")),
        *(meta.get(name) for name in ("n_ctx", "n_ctx_train")),  # type: ignore[union-attr]
    ]
    return next((int(size) for size in told if isinstance(size, int) and 1_000 <= size < 100_000_000), None)


def _kept_format(model: OpenAIChatModel) -> bool:
    """The adapter goes on without a format that was refused."""
    return "response_format" not in model.refused


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _said(reply: Message) -> str:
    calls = [f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})" for call in reply.tool_calls]
    return ", ".join(calls) or reply.text.strip()


def _since(began: float) -> float:
    return round(time.perf_counter() - began, 3)
