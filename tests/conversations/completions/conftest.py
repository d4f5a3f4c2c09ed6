"""The real OpenAI client against the running product."""

from collections.abc import Iterator

import pytest
from openai import OpenAI

from tests.product import Person, Product


@pytest.fixture
def person(product: Product) -> Person:
    return product.person()


@pytest.fixture
def client(product: Product, person: Person) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{product.url}/v1", api_key=person.key, max_retries=0, timeout=60) as client:
        yield client


@pytest.fixture
def agent(client: OpenAI) -> str:
    """The id of the default agent."""
    return next(model.id for model in client.models.list() if model.id.startswith("agent-"))
