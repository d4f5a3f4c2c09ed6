"""Rate limits of the API and of messages: one count for a person, one for a key, whatever process they reach."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from accounts import rates
from accounts.errors import TooOften
from accounts.models import User
from accounts.services import create_api_key
from agentapp.environment import read_environment
from agentapp.valkey import sync_client
from conversations import services
from conversations.models import Run
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    for key in sync_client().keys("rate:*"):
        sync_client().delete(key)


@pytest.fixture
def grace() -> User:
    return make_user("grace")


def _get(key: str) -> Any:
    return Client().get("/api/v1/approvals", headers={"Authorization": f"Bearer {key}"})


def test_too_many_requests_are_told_when_to_come_back(grace: User, settings: Any) -> None:
    settings.RATE_REQUESTS = "3/hour"
    _, key = create_api_key(grace, "script")
    answers = [_get(key) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].json()["code"] == "rate_limited"
    assert 3_500 < int(answers[-1]["Retry-After"]) <= 3_600


def test_another_person_is_not_held_up(grace: User, settings: Any) -> None:
    settings.RATE_REQUESTS = "1/hour"
    keys = [create_api_key(user, "script")[1] for user in (grace, make_user("ada"))]
    assert [_get(key).status_code for key in [keys[0], keys[0], keys[1]]] == [200, 429, 200]


def test_pages_and_keys_of_a_person_count_together(grace: User, settings: Any) -> None:
    settings.RATE_REQUESTS = "1/hour"
    client = Client()
    client.force_login(grace)
    assert client.get("/api/v1/approvals").status_code == 200
    assert _get(create_api_key(grace, "script")[1]).status_code == 429


def test_what_a_key_may_not_do_counts_as_well(grace: User, settings: Any) -> None:
    settings.RATE_REQUESTS = "2/hour"
    _, key = create_api_key(grace, "reader", scopes=["admin:read"])
    assert [_get(key).status_code for _ in range(3)] == [403, 403, 429]


def test_who_has_no_key_is_told_to_wait_and_holds_up_nobody_else(grace: User, settings: Any) -> None:
    settings.RATE_REQUESTS = "2/hour"
    _, stolen = create_api_key(grace, "elsewhere", addresses=["10.0.0.0/8"])
    answers = [_get(key) for key in (stolen, "aa_wrong", "aa_guessed", stolen)]
    assert [answer.status_code for answer in answers] == [403, 401, 429, 429]
    assert 3_500 < int(answers[-1]["Retry-After"]) <= 3_600
    assert _get(create_api_key(grace, "here")[1]).status_code == 200


def test_strangers_fill_no_memory(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.RATE_REQUESTS = "2/hour"
    monkeypatch.setattr("accounts.rates.STRANGERS", 4)
    for number in range(50):
        rates.count_stranger(f"2001:db8:{number:x}::1")
    assert len(sync_client().keys("rate:strangers:*")) <= 4


def test_a_network_of_one_customer_is_one_stranger(settings: Any) -> None:
    settings.RATE_REQUESTS = "1/hour"
    rates.count_stranger("2001:db8:1:2::3")
    assert rates.count_stranger("2001:db8:1:2:ffff::4").refused
    assert not rates.count_stranger("192.0.2.4").refused


def test_a_message_too_many_starts_nothing(grace: User, settings: Any) -> None:
    settings.RATE_MESSAGES = "2/hour"
    for text in ("One", "Two"):
        services.send_message(grace, text)
    with pytest.raises(TooOften) as refused:
        services.send_message(grace, "Three")
    assert 3_500 < refused.value.retry_after <= 3_600
    assert Run.objects.filter(user=grace).count() == 2


@pytest.fixture
def nobody_counts(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Valkey is where nobody listens."""
    settings.REDIS_URL = "redis://127.0.0.1:1"
    monkeypatch.setattr("agentapp.valkey._sync", [])
    rates._limiter.cache_clear()
    yield
    rates._limiter.cache_clear()


@pytest.mark.usefixtures("nobody_counts")
def test_with_the_live_channel_away_nobody_is_held_up(grace: User, settings: Any) -> None:
    settings.RATE_MESSAGES = settings.RATE_REQUESTS = "1/hour"
    for text in ("One", "Two"):
        services.send_message(grace, text)
    assert Run.objects.filter(user=grace).count() == 2
    _, key = create_api_key(grace, "script")
    answers = [_get(key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200] and "RateLimit-Limit" not in answers[-1]


def test_a_limit_can_be_lifted_and_nonsense_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATE_REQUESTS", "0")
    assert read_environment().rate_requests == ""
    monkeypatch.setenv("RATE_REQUESTS", "often")
    with pytest.raises(ImproperlyConfigured, match="RATE_REQUESTS"):
        read_environment()
