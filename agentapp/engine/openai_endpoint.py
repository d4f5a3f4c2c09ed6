"""Where a model's requests go: address, headers and time limits, put together once and not for each request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2
    import openai

# The length is that of one body; the others describe this machine to the vendor of the client.
_LEFT_OUT = (b"content-length", b"x-stainless-")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`key` is what no error may repeat."""

    http: httpx2.AsyncClient
    url: httpx2.URL
    headers: list[tuple[bytes, bytes]]
    extensions: dict[str, Any]
    key: str

    @classmethod
    def at(cls, http: httpx2.AsyncClient, base_url: str, headers: Mapping[str, str], key: str) -> Endpoint:
        """An address like `https://api.example.org/v1`; `headers` say who asks, as this endpoint wants to hear it."""
        sent = {b"accept": b"application/json", b"content-type": b"application/json"}
        sent |= {name.lower().encode(): text.encode() for name, text in headers.items()}
        return cls._of(http, http.build_request("POST", f"{base_url.rstrip('/')}/chat/completions", headers=sent), key)

    @classmethod
    async def of_client(cls, client: openai.AsyncOpenAI, key: str, model: str) -> Endpoint:
        """As the client itself would address this model: some address each one differently, or sign in by a token."""
        from openai._models import FinalRequestOptions  # the client has loaded it already

        wanted = FinalRequestOptions(method="post", url="/chat/completions", json_data={"model": model})
        return cls._of(client._client, client._build_request(await client._prepare_options(wanted)), key)

    @classmethod
    def _of(cls, http: httpx2.AsyncClient, built: httpx2.Request, key: str) -> Endpoint:
        headers = [(name, value) for name, value in built.headers.raw if not name.lower().startswith(_LEFT_OUT)]
        return cls(http, built.url, headers, built.extensions, key)

    def request(self, body: bytes) -> httpx2.Request:
        """Complete as it is: nothing is looked up, merged or guessed for each request again."""
        import httpx2

        headers = httpx2.Headers([*self.headers, (b"Content-Length", b"%d" % len(body))])
        stream = httpx2.ByteStream(body)
        return httpx2.Request("POST", self.url, headers=headers, stream=stream, extensions=self.extensions)
