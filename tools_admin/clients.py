"""Endpoints of model providers: one a provider and process, because building one costs as much as a call. They share
one pool of connections."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from agentapp.encryption import UndecryptableSecret
from tools_admin.errors import NoModel
from tools_admin.models import LanguageModel, Provider
from tools_admin.presets import PRESETS

if TYPE_CHECKING:
    from agentapp.engine import ChatModel, ModelError, OpenAIChatModel
    from agentapp.engine.openai_endpoint import Endpoint
    from tools_admin.gathering import GatheringTransport
    from tools_admin.health import Health
    from tools_admin.turnstile import Turnstile

# Who keeps the record of a run is told of each try that fails, followed by another or not: the model's name, the error.
attempt_failed: "ContextVar[Callable[[str, ModelError], Awaitable[None]] | None]" = ContextVar("failed", default=None)
# Whether replies are for a program: a page shows words as they come, a program can have them in fewer pieces.
for_program: ContextVar[bool] = ContextVar("for_program", default=False)
MOST_CONNECTIONS = 1_000
CONNECT_SECONDS = 10.0


class ModelClients:
    """Endpoints of one event loop, made on first use and made anew when their provider's row has changed; and what the
    workers tell each other about their calls.

    A replaced one works on for the runs that still hold it.
    """

    def __init__(self) -> None:
        self._endpoints: dict[int, tuple[datetime, Endpoint]] = {}
        self.models: dict[int, tuple[dict[str, Any], OpenAIChatModel]] = {}
        self._transport: GatheringTransport | None = None

    def get(self, provider: Provider) -> "Endpoint":
        """Raises `NoModel` when its key cannot be read."""
        known = self._endpoints.get(provider.pk)
        if known is None or known[0] != provider.updated_at:
            known = self._endpoints[provider.pk] = (provider.updated_at, self._endpoint(provider))
        return known[1]

    @cached_property
    def health(self) -> "Health":
        from tools_admin.health import Health

        return Health()

    @cached_property
    def turnstile(self) -> "Turnstile":
        from tools_admin.turnstile import Turnstile

        return Turnstile()

    async def aclose(self) -> None:
        self._endpoints, self.models = {}, {}
        for name in ("health", "turnstile"):
            if name in self.__dict__:
                await self.__dict__.pop(name).aclose()
        if self._transport is not None:
            await self._transport.aclose()

    def _endpoint(self, provider: Provider) -> "Endpoint":
        import httpx2  # only processes that call models pay for it

        from agentapp.engine.openai_endpoint import Endpoint
        from tools_admin.gathering import GatheringTransport

        self._transport = self._transport or GatheringTransport(httpx2.Limits(max_connections=MOST_CONNECTIONS))
        timeout = httpx2.Timeout(provider.timeout, connect=CONNECT_SECONDS)
        http = httpx2.AsyncClient(timeout=timeout, transport=self._transport, headers={"User-Agent": "agentapp"})
        return Endpoint.at(http, provider.base_url, headers_of(provider), key_of(provider))


def chat_model(model: LanguageModel, clients: ModelClients) -> "OpenAIChatModel":
    """The engine's view of a model row, without its guards; `model.provider` must be loaded."""
    from agentapp.engine import OpenAIChatModel, Prices

    provider, preset = model.provider, PRESETS[model.provider.preset]
    described: dict[str, Any] = {
        "client": clients.get(provider),
        "model": model.name,
        "abilities": model.abilities,
        "context_size": model.context_size,
        "max_output_tokens": model.max_output_tokens,
        "extra": {**provider.extra_body, **model.extra_body},
        "max_tools": preset.max_tools,
        "prices": Prices(*model.prices),
    }
    known = clients.models.get(model.pk)
    if known is None or known[0] != described:  # it has learnt what its endpoint refuses, and where it is
        known = clients.models[model.pk] = (described, OpenAIChatModel(**described))
    return known[1]


def chat_chain(
    models: Sequence[LanguageModel], clients: ModelClients, extra: Mapping[str, Any] | None = None
) -> "ChatModel":
    """The same for one model or several that stand in for each other, with limits and circuit breakers.

    `extra` are further options of every request. Raises `NoModel` when no model's key can be read.
    """
    from tools_admin.guarded import GuardedModel, guarded

    usable, problems = [], []
    for model in models:
        try:
            bare = chat_model(model, clients)
            bare = bare.with_extra(extra) if extra else bare
            usable.append(GuardedModel(model, bare, clients.health, clients.turnstile))
        except NoModel as problem:
            problems.append(problem)
    if not usable:
        raise problems[0]
    return guarded(usable)


def key_of(provider: Provider) -> str:
    """Raises `NoModel` when it cannot be read."""
    try:
        return provider.api_key.get_secret_value()
    except UndecryptableSecret:
        text = _(
            "The key of %(provider)s cannot be read with the present ENCRYPTION_KEYS; an administrator enters it anew."
        )
        raise NoModel(text % {"provider": provider}) from None


def headers_of(provider: Provider) -> dict[str, str]:
    """How the key travels, and the administrators' own headers. Without a key none is pretended."""
    key = key_of(provider)
    auth = PRESETS[provider.preset].auth if key else {}
    headers = {**auth, **provider.extra_headers}
    return {name: text.replace("{key}", key) for name, text in headers.items()}
