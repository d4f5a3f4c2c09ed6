"""Any model behind an OpenAI-compatible endpoint.

Of the `openai` client the configuration, the authentication and the HTTP client are used; requests go straight through
the latter, because the typed call walks the whole history each time. Who needs nothing of the client names an
`Endpoint`, and spares the process 17 MB.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from .errors import BadModelRequest, IncompleteStream, ModelError, ModelUnavailable
from .history import merge_adjacent
from .messages import Chunk, Completion, Message
from .models import ToolDefinitions
from .openai_endpoint import Endpoint
from .openai_errors import error_of_response, without_secret
from .openai_stream import StreamReader
from .openai_wire import WireStyle, dump_json, encode_messages, read_reply
from .prices import Prices

if TYPE_CHECKING:
    import httpx2
    import openai

_WANTS_SHORT_IDS = re.compile(r"tool[ _]call[ _]id.*length of 9", re.IGNORECASE | re.DOTALL)
_OUTPUT_LIMITS = {"max_tokens", "max_completion_tokens"}
SECONDS_TO_FINISH = 0.1
DEFAULT_OUTPUT_TOKENS = 64_000
DEFAULT_ABILITIES: Mapping[str, bool] = MappingProxyType({"tool_call": True, "json_mode": True, "streaming": True})


class OpenAIChatModel:
    """`extra` is merged into every request body (temperature, `max_tokens` …).

    `max_output_tokens` is what a reply may take of the context, and by which a cut one is known. It is not sent, as
    endpoints disagree about its name and some refuse any; to cap replies put `max_tokens` or `max_completion_tokens`
    into `extra`. More than `max_tools` tools are refused before anything is sent.

    Abilities of this adapter: `echo_reasoning` sends reasoning back with its tool calls, for providers that require
    it; `short_ids` gives calls ids of nine letters and digits; `merge_roles` joins messages of one role in a row;
    `stream_usage: False` asks for no usage in streams. What an endpoint refuses by name is learnt from its error and
    done its way from then on: `learnt` are the abilities that came out differently, `refused` the options.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI | Endpoint,
        model: str,
        *,
        abilities: Mapping[str, bool] = DEFAULT_ABILITIES,
        context_size: int = 128_000,
        max_output_tokens: int = DEFAULT_OUTPUT_TOKENS,
        extra: Mapping[str, Any] | None = None,
        max_tools: int = 128,
        prices: Prices = Prices(),  # noqa: B008 (immutable)
    ) -> None:
        self.name = model
        self.abilities = abilities
        self.context_size = context_size
        self.max_output_tokens = max_output_tokens
        self.max_tools = max_tools
        self.cost_of = prices.cost_of
        self._client = client
        self._extra = dict(extra or {})
        self._style = WireStyle(bool(abilities.get("echo_reasoning")), bool(abilities.get("short_ids")))
        self._merge_roles = bool(abilities.get("merge_roles"))
        self._include_usage = bool(abilities.get("stream_usage", True))
        self.learnt: dict[str, bool] = {}
        self.refused: set[str] = set()
        self._tools: tuple[ToolDefinitions | None, bytes] = (None, b"")
        self._endpoint = client if isinstance(client, Endpoint) else None

    def with_extra(self, extra: Mapping[str, Any]) -> OpenAIChatModel:
        """The same model with further options in every request; they win over its own."""
        other = copy(self)
        kept = self._extra
        if not extra.keys().isdisjoint(_OUTPUT_LIMITS):  # two names of one option
            kept = {name: value for name, value in kept.items() if name not in _OUTPUT_LIMITS}
        other._extra = {**kept, **extra}
        return other

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> Completion:
        options = {"tool_choice": tool_choice, "response_format": response_format}
        response = await self._request(messages, tools, options, stream=False)
        return read_reply(response.content, response.headers).completion(messages, tools or ())

    async def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: ToolDefinitions | None = None,
        tool_choice: str | dict[str, Any] | None = None,
        response_format: dict[str, Any] | None = None,
    ) -> AsyncIterator[Chunk]:
        import httpx2

        options = {"tool_choice": tool_choice, "response_format": response_format}
        response = await self._request(messages, tools, options, stream=True)
        reader = StreamReader(messages, tools or ())
        body = _body_of(response)
        try:
            async for data in body:
                for chunk in reader.feed(data):
                    yield chunk
                if reader.done:
                    await _finish(body)
                    break
            for chunk in reader.end():
                yield chunk
        except httpx2.TransportError as error:
            raise IncompleteStream(f"the stream broke off: {type(error).__name__}") from error
        finally:
            await response.aclose()

    async def _request(
        self, messages: Sequence[Message], tools: ToolDefinitions | None, options: dict[str, Any], *, stream: bool
    ) -> httpx2.Response:
        """One answer with a good status. A refused parameter is repaired once; nothing else is sent again."""
        try:
            return await self._send(self._body(messages, tools, options, stream), stream)
        except BadModelRequest as error:
            if not self._repair(error):
                raise
        return await self._send(self._body(messages, tools, options, stream), stream)

    async def _send(self, body: bytes, stream: bool) -> httpx2.Response:
        import httpx2

        endpoint = await self._where()
        try:
            response = await endpoint.http.send(endpoint.request(body), stream=True)
            if response.status_code >= 300 or not stream:
                try:
                    await response.aread()
                finally:
                    await response.aclose()
        except httpx2.TimeoutException as error:
            raise ModelUnavailable(f"timeout: {type(error).__name__}") from error
        except httpx2.TransportError as error:
            raise ModelUnavailable(f"connection failed: {type(error).__name__}: {error}") from error
        if response.status_code >= 300:
            body = without_secret(response.content, endpoint.key)
            raise error_of_response(response.status_code, response.headers, body)
        return response

    async def _where(self) -> Endpoint:
        if not isinstance(self._client, Endpoint):
            key = await _credential(self._client)
            if self._endpoint is None or self._endpoint.key != key:
                self._endpoint = await Endpoint.of_client(self._client, key, self.name)
        return cast(Endpoint, self._endpoint)

    def _body(
        self, messages: Sequence[Message], tools: ToolDefinitions | None, options: dict[str, Any], stream: bool
    ) -> bytes:
        rest: dict[str, Any] = {"model": self.name, **self._extra}
        if not tools:  # endpoints refuse these on their own
            rest = {name: value for name, value in rest.items() if name not in ("tool_choice", "parallel_tool_calls")}
        elif len(tools) > self.max_tools:
            raise BadModelRequest(f"{len(tools)} tools are more than the {self.max_tools} that {self.name} takes")
        rest.update({name: value for name, value in options.items() if value is not None and name not in self.refused})
        if stream:
            rest["stream"] = True
            if self._include_usage:
                rest["stream_options"] = {"include_usage": True}
        if self._merge_roles:
            messages = merge_adjacent(messages)
        parts = [b'{"messages":', encode_messages(messages, self._style), b","]
        if tools:
            if self._tools[0] is not tools:
                self._tools = (tools, dump_json(list(tools)))
            parts += (b'"tools":', self._tools[1], b",")
        parts.append(dump_json(rest)[1:])
        return b"".join(parts)

    def _repair(self, error: ModelError) -> bool:
        """Learns from a refusal of a parameter. Whether another request may fare better."""
        message = error.message
        if "stream_options" in message and self._include_usage:
            self._include_usage = self.learnt["stream_usage"] = False
        elif "reasoning_content" in message:
            self.learnt["echo_reasoning"] = not self._style.echo_reasoning
            self._style = self._style._replace(echo_reasoning=not self._style.echo_reasoning)
        elif "response_format" in message and "response_format" not in self.refused:
            self.refused.add("response_format")
        elif "alternate" in message and "role" in message and not self._merge_roles:
            self._merge_roles = self.learnt["merge_roles"] = True
        elif _WANTS_SHORT_IDS.search(message) and not self._style.short_ids:
            self._style = self._style._replace(short_ids=True)
            self.learnt["short_ids"] = True
        elif "max_completion_tokens" in message and "max_tokens" in self._extra:
            self._extra["max_completion_tokens"] = self._extra.pop("max_tokens")
        else:
            return self._without_refused(message)
        return True

    def _without_refused(self, message: str) -> bool:
        """Leaves out the parameter of `extra` that an endpoint names as unsupported."""
        unsupported = "unsupported" in message.lower()
        refused = next((name for name in self._extra if unsupported and f"'{name}'" in message), None)
        if refused is None:
            return False
        del self._extra[refused]
        self.refused.add(refused)
        return True


async def _credential(client: openai.AsyncOpenAI) -> str:
    """The key of this moment, or the token of clients that have one: either may change."""
    get_token = getattr(client, "_get_azure_ad_token", None)
    token = await get_token() if get_token is not None else None
    return token or await client._refresh_api_key()


def _body_of(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The body as it comes in. The response's own iterators are two more layers, which only an encoded one needs."""
    import httpx2

    if "content-encoding" in response.headers or not isinstance(response.stream, httpx2.AsyncByteStream):
        return response.aiter_bytes()
    return aiter(response.stream)


async def _finish(body: AsyncIterator[bytes]) -> None:
    """Reads on behind the last event: only a body that was read to its end leaves a connection for the next request."""
    import httpx2

    with suppress(TimeoutError, httpx2.TransportError):
        async with asyncio.timeout(SECONDS_TO_FINISH):
            async for _ in body:
                pass
