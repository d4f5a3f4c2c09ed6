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


def test_what_waits_and_what_runs_low_is_told_too(product: Product, receiver: Receiver) -> None:
    """Each once, signed, and about the run that it names."""
    person = product.person()
    product.execute(
        'INSERT INTO accounts_budget (user_id, unit, period, "limit", warn_percent, used, period_start, warned)'
        " VALUES (%s, 'tokens', 'month', 500000, 1, 4950, now(), false)",
        person.id,
    )
    product.execute("UPDATE tools_admin_tool SET approval = 'always' WHERE name = 'calculator'")
    try:
        with httpx2.Client(base_url=f"{product.url}/api/v1", headers=person.bearer, timeout=70) as api:
            hook = api.post(
                "/webhooks", json={"url": receiver.url, "events": ["approval.needed", "budget.near"]}
            ).json()
            product.execute("UPDATE conversations_webhook SET private_allowed = true WHERE id = %s", hook["id"])
            run = api.post("/runs", json={"input": "What is 12 * 12?"}).json()["id"]
            eventually(lambda: len(receiver.got) == 2, "both have come")
            [asked] = api.get("/approvals").json()["items"]
            assert api.post(f"/approvals/{asked['id']}", json={"decision": "approve"}).status_code == 200
            eventually(lambda: api.get(f"/runs/{run}").json()["status"] == "completed", "the run has ended")
            assert [row["state"] for row in api.get(f"/webhooks/{hook['id']}/deliveries").json()["items"]] == [
                "delivered",
                "delivered",
            ], "neither is told twice"
    finally:
        product.execute("UPDATE tools_admin_tool SET approval = 'never' WHERE name = 'calculator'")
    assert all(is_signed(hook["secret"], headers, body) for headers, body in receiver.got)
    told = {body["type"]: body["data"] for body in receiver.bodies()}
    [request] = told["approval.needed"]["approvals"]
    assert (told["approval.needed"]["run"], request["id"], request["tool"]) == (run, asked["id"], "calculator")
    low = told["budget.near"]
    assert (low["run"], low["limit"]) == (run, 500_000) and low["used"] >= 5_000


def test_the_page_makes_tries_disables_and_deletes_a_webhook(ada: Client) -> None:
    page = ada.post("/webhooks/", {"url": URL, "events": ["run.finished", "budget.near"]})
    webhook = Webhook.objects.get()
    assert webhook.secret.get_secret_value() in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    address = f"/webhooks/{webhook.id}/"
    assert webhook.secret.get_secret_value() not in ada.get(address).content.decode()
    assert ada.post(f"{address}ping/").status_code == 302
    [delivery] = Delivery.objects.all()
    Delivery.objects.update(state="failed", due_at=None, tries=5)
    assert ada.post(f"/webhooks/deliveries/{delivery.id}/replay/")["Location"] == address
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == ("pending", 0)
    ada.post(f"{address}disable/")
    assert "Enable it first" in ada.post(f"{address}ping/", follow=True).content.decode()
    assert ada.post(f"{address}explode/").status_code == 404
    ada.post(f"{address}delete/")
    assert not Webhook.objects.exists()


@pytest.mark.parametrize("body", [{"url": "ftp://x", "events": ["run.finished"]}, {"url": URL}, {}, {"events": ["x"]}])
def test_the_page_says_what_is_wrong(ada: Client, body: dict[str, Any]) -> None:
    page = ada.post("/webhooks/", body)
    assert page.status_code == 200
    assert "field-error" in page.content.decode()
    assert not Webhook.objects.exists()


def test_the_admin_makes_one_for_everybody_and_sends_again(admin_client: Client) -> None:
    form = {"url": "http://wiki:8080/hook", "events": ["approval.needed"], "enabled": "on", "private_allowed": "on"}
    page = admin_client.post("/admin/conversations/webhook/add/", form)
    webhook = Webhook.objects.get()
    assert (webhook.user, webhook.private_allowed, webhook.events) == (None, True, ["approval.needed"])
    secret = webhook.secret.get_secret_value()
    assert secret.startswith("whsec_")
    assert secret in page.content.decode()
    again = admin_client.get(f"/admin/conversations/webhook/{webhook.id}/change/")
    assert (again.status_code, secret in again.content.decode()) == (200, False)
    delivery = Delivery.objects.create(webhook=webhook, event="ping", payload={}, state="failed", tries=5)
    action = {"action": "replay", "_selected_action": [str(delivery.id)]}
    admin_client.post("/admin/conversations/delivery/", action)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == ("pending", 0)


def test_members_do_not_see_the_webhooks_of_the_installation(ada: Client) -> None:
    webhook = Webhook.objects.create(url=URL, events=["run.finished"])
    assert ada.get("/api/v1/webhooks").json()["items"] == []
    assert ada.get(f"/webhooks/{webhook.id}/").status_code == 404
    assert ada.get("/admin/conversations/webhook/").status_code == 302
