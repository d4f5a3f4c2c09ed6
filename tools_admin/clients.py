"""Clients of model providers: one a provider and process, because building one costs more than a run. They share
one pool of connections."""

from datetime import datetime
from typing import TYPE_CHECKING

from tools_admin.models import LanguageModel, Provider

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from agentapp.engine import OpenAIChatModel
    from tools_admin.gathering import GatheringTransport


class ModelClients:
    """Clients of one event loop, made on first use and made anew when their provider's row has changed.

    A replaced client works on for the runs that still hold it.
    """

    def __init__(self) -> None:
        self._clients: dict[int, tuple[datetime, AsyncOpenAI]] = {}
        self._transport: GatheringTransport | None = None

    def get(self, provider: Provider) -> "AsyncOpenAI":
        known = self._clients.get(provider.pk)
        if known is None or known[0] != provider.updated_at:
            known = self._clients[provider.pk] = (provider.updated_at, self._client(provider))
        return known[1]

    async def aclose(self) -> None:
        self._clients = {}
        if self._transport is not None:
            await self._transport.aclose()

    def _client(self, provider: Provider) -> "AsyncOpenAI":
        # 32 MB and half a second: only processes that call models pay for it.
        import httpx2
        from openai import DEFAULT_CONNECTION_LIMITS, AsyncOpenAI

        from tools_admin.gathering import GatheringTransport

        self._transport = self._transport or GatheringTransport(DEFAULT_CONNECTION_LIMITS)
        timeout = httpx2.Timeout(provider.timeout, connect=10.0)
        return AsyncOpenAI(
            base_url=provider.base_url,
            api_key=provider.api_key.get_secret_value() or "none",  # the library insists on a key, local servers do not
            timeout=timeout,
            max_retries=0,  # retries are the engine's
            http_client=httpx2.AsyncClient(timeout=timeout, transport=self._transport),
        )


_shared = ModelClients()


def chat_model(model: LanguageModel, clients: ModelClients = _shared) -> "OpenAIChatModel":
    """The engine's view of a model row; `model.provider` must be loaded. The process's clients serve one loop."""
    from agentapp.engine import OpenAIChatModel

    return OpenAIChatModel(
        clients.get(model.provider),
        model.name,
        abilities=model.abilities,
        context_size=model.context_size,
        max_output_tokens=model.max_output_tokens,
        extra=model.extra_body,
    )
