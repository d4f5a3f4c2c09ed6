"""One's own webhooks by REST, and an event on its whole way through the running product."""

from typing import Any

import httpx2
import pytest
from django.test import Client

from conversations.models import Delivery, Webhook
from tests.conversations.webhooks.receiver import Receiver, is_signed
from tests.factories import make_user
from tests.product import Product, eventually

URL = "https://hooks.example/x"


@pytest.fixture
def ada(db: None, client: Client) -> Client:
    client.force_login(make_user("ada"))
    return client


def post(client: Client, path: str, body: Any = None, method: str = "post") -> tuple[int, Any]:
    answer = getattr(client, method)(f"/api/v1{path}", body or {}, content_type="application/json")
    return answer.status_code, answer.json() if answer.content else None


def test_a_webhook_shows_its_secret_once(ada: Client) -> None:
    status, made = post(ada, "/webhooks", {"url": URL, "events": ["run.finished"]})
    assert status == 201
    assert made["secret"].startswith("whsec_")
    [listed] = ada.get("/api/v1/webhooks").json()["items"]
    assert "secret" not in listed
    assert post(ada, f"/webhooks/{made['id']}", {"enabled": False}, "patch")[1]["enabled"] is False
    assert post(ada, f"/webhooks/{made['id']}/ping")[1]["code"] == "webhook_disabled"
    assert post(ada, f"/webhooks/{made['id']}", method="delete")[0] == 204
    assert ada.get("/api/v1/webhooks").json()["items"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"url": "ftp://x.example/", "events": ["run.finished"]},
        {"url": "https://user:word@x.example/", "events": ["run.finished"]},
        {"url": URL, "events": []},
        {"url": URL, "events": ["everything"]},
        {"url": "https://" + "x" * 2_000, "events": ["run.finished"]},
    ],
)
def test_what_is_no_webhook_is_refused(ada: Client, body: dict[str, Any]) -> None:
    assert post(ada, "/webhooks", body)[0] == 422


def test_there_is_an_end_of_webhooks(ada: Client) -> None:
    for _ in range(20):
        post(ada, "/webhooks", {"url": URL, "events": ["run.finished"]})
    assert post(ada, "/webhooks", {"url": URL, "events": ["run.finished"]})[1]["code"] == "too_many_webhooks"


def test_the_log_comes_in_pages(ada: Client) -> None:
    webhook = Webhook.objects.get(id=post(ada, "/webhooks", {"url": URL, "events": ["run.finished"]})[1]["id"])
    made = [Delivery.objects.create(webhook=webhook, event="ping", payload={}) for _ in range(60)]
    page = ada.get(f"/api/v1/webhooks/{webhook.id}/deliveries").json()
    rest = ada.get(f"/api/v1/webhooks/{webhook.id}/deliveries", {"cursor": page["next"]}).json()
    seen = [row["id"] for row in page["items"] + rest["items"]]
    assert (len(page["items"]), rest["next"]) == (50, None)
    assert sorted(seen) == sorted(str(delivery.id) for delivery in made)


def test_a_run_is_told_to_its_owners_webhook_and_again_when_asked(product: Product, receiver: Receiver) -> None:
    person = product.person()
    with httpx2.Client(base_url=f"{product.url}/api/v1", headers=person.bearer, timeout=70) as api:
        hook = api.post("/webhooks", json={"url": receiver.url, "events": ["run.finished"]}).json()
        product.execute("UPDATE conversations_webhook SET private_allowed = true WHERE id = %s", hook["id"])
        run = api.post("/runs", json={"input": "Hello", "wait": 60}).json()
        eventually(lambda: receiver.got, "the event has come")
        headers, body = receiver.got[0]
        assert is_signed(hook["secret"], headers, body)
        assert receiver.bodies()[0]["data"]["run"] == run["id"]
        log = f"/webhooks/{hook['id']}/deliveries"
        [delivery] = eventually(
            lambda: (rows := api.get(log).json()["items"])[0]["state"] == "delivered" and rows, "it is on record"
        )
        assert api.post(f"/deliveries/{delivery['id']}/replay").status_code == 202
        eventually(lambda: len(receiver.got) == 2, "it has come again")
        assert receiver.got[1][0]["webhook-id"] == headers["webhook-id"]
