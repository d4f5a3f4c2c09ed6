"""Texts → vectors, by the first model of the route `embedding`. Vectors of two models cannot be compared."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from django.db import transaction

from accounts.models import Budget, User
from agentapp.engine import Prices, Usage
from agentapp.engine.errors import ModelError
from agentapp.engine.openai_errors import error_of_response, without_secret
from tools_admin.clients import ModelClients, headers_of
from tools_admin.errors import NoModel
from tools_admin.models import EmbeddingUse, LanguageModel
from tools_admin.routing import choose_for_role

ROLE = "embedding"
MOST_DIMENSIONS = 16_000  # that pgvector holds


class NoVectors(Exception):
    """The endpoint gave none; the text is its own words, for administrators."""


@dataclass(frozen=True, slots=True)
class Embedded:
    vectors: list[list[float]]
    tokens: int
    cost: int  # micro-units of the currency


def embedding_model(user: User | None) -> LanguageModel | None:
    """The model that a person's texts go to; None: there is none, and texts are found by their words."""
    choice = choose_for_role(ROLE, user)
    models = choice.models if choice else ()
    return next((model for model in models if model.kind == LanguageModel.Kind.EMBEDDING), None)


async def embed(model: LanguageModel, texts: Sequence[str], clients: ModelClients) -> Embedded:
    """A vector a text, in one request; `model.provider` must be loaded. Raises `NoVectors`."""
    try:
        answer = await _ask(model, texts, clients)
    except (ModelError, NoModel, _http_errors()) as error:
        status = getattr(error, "status", None)
        words = f"{f'HTTP {status}: ' if status else ''}{str(error) or type(error).__name__}"
        raise NoVectors(words[:1_000]) from None
    try:
        rows = sorted(answer["data"], key=lambda row: row.get("index", 0))
        vectors = [[float(number) for number in row["embedding"]] for row in rows]
        tokens = max(0, int((answer.get("usage") or {}).get("total_tokens") or sum(map(len, texts)) // 4))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise NoVectors("The endpoint did not answer with vectors.") from None
    sizes = {len(vector) for vector in vectors}
    if len(vectors) != len(texts) or len(sizes) != 1 or not 0 < max(sizes) <= MOST_DIMENSIONS:
        raise NoVectors("The endpoint did not answer with one vector for each text.")
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise NoVectors("The endpoint answered with vectors that are not made of numbers.")
    return Embedded(vectors, tokens, Prices(*model.prices).cost_of(Usage(tokens, 0)))


def can_pay(user: int | None) -> bool:
    """Whether something is left in all of a person's budgets; what belongs to nobody is the installation's to pay."""
    return user is None or all(
        budget.left for budget in Budget.objects.of_person(user).select_related("user", "group", "api_key__user")
    )


@transaction.atomic
def record_use(user: int | None, model: LanguageModel, embedded: Embedded, document: UUID | None = None) -> None:
    """Puts a call on record, and on the budgets of the person for whom it was made."""
    use = EmbeddingUse.objects.create(
        user_id=user, model=model, document_id=document, tokens=embedded.tokens, cost=embedded.cost
    )
    if user is not None:
        use.payers.set(Budget.objects.of_person(user).charge(embedded.cost, embedded.tokens))


async def _ask(model: LanguageModel, texts: Sequence[str], clients: ModelClients) -> dict[str, Any]:
    provider = model.provider
    http = clients.get(provider).http  # the provider's time limits and pool
    body = {"model": model.name, "input": list(texts), **provider.extra_body, **model.extra_body}
    response = await http.post(
        f"{provider.base_url.rstrip('/')}/embeddings",
        headers={**headers_of(provider), "Content-Type": "application/json"},
        content=json.dumps(body),
    )
    if response.status_code >= 300:
        said = without_secret(response.content, provider.api_key.get_secret_value())
        raise error_of_response(response.status_code, response.headers, said)
    try:
        answer = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise NoVectors("The endpoint did not answer with vectors.")
    return answer


def _http_errors() -> type[Exception]:
    import httpx2

    return httpx2.HTTPError


async def embed_question(model: LanguageModel, question: str) -> Embedded:
    """With a connection of its own: the loop may end with the question. Raises `NoVectors`."""
    clients = ModelClients()
    try:
        return await embed(model, [question], clients)
    finally:
        await clients.aclose()
