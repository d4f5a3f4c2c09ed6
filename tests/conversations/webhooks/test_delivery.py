"""One try at a time: signed, bounded, and again where it fails."""

import gzip
import tracemalloc
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.utils import timezone
from pydantic import SecretStr

from conversations.lifecycle import end_run
from conversations.models import Delivery, Run, Webhook
from conversations.webhooks import delivery as sending
from conversations.webhooks import outbox, service
from tests.conversations.webhooks.receiver import Receiver, endless, is_signed, never, status
from tests.factories import make_conversation, make_message, make_run, make_user

SECRET = "whsec_" + "c2VjcmV0" * 4
pytestmark = pytest.mark.django_db


def hook(url: str, *events: str, **fields: Any) -> Webhook:
    fields = {"user": None, "private_allowed": True, **fields}
    return Webhook.objects.create(url=url, events=list(events or ["run.finished"]), secret=SecretStr(SECRET), **fields)


def told(webhook: Webhook) -> Delivery:
    """A delivery that is due."""
    return Delivery.objects.create(webhook=webhook, event="ping", payload={"type": "ping"}, due_at=timezone.now())


def after(delivery: Delivery) -> Delivery:
    sending.deliver(delivery.id)
    delivery.refresh_from_db()
    return delivery


def again(delivery: Delivery) -> Delivery:
    Delivery.objects.filter(id=delivery.id).update(due_at=timezone.now())
    return after(delivery)


def test_what_arrives_is_signed(receiver: Receiver) -> None:
    delivery = after(told(hook(receiver.url)))
    [(headers, body)] = receiver.got
    assert is_signed(SECRET, headers, body)
    assert not is_signed(SECRET, headers, body + b" ")
    assert (headers["webhook-id"], headers["content-type"]) == (str(delivery.id), "application/json")
    assert (delivery.state, delivery.status, delivery.tries, delivery.due_at) == ("delivered", 204, 1, None)


def test_a_failure_is_tried_again_more_and_more_slowly(receiver: Receiver) -> None:
    receiver.answer = status(500)
    delivery = told(hook(receiver.url))
    waits = []
    for _ in range(5):
        again(delivery)
        waits.append(round((delivery.due_at - timezone.now()).total_seconds() / 60) if delivery.due_at else None)
    assert waits == [1, 15, 120, 1080, None]
    assert (delivery.state, delivery.status, delivery.answer) == ("failed", 500, "hello")
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    again(delivery)
    assert len(receiver.got) == 5


def test_a_success_after_failures_begins_anew(receiver: Receiver) -> None:
    webhook = hook(receiver.url)
    receiver.answer = status(503)
    delivery = after(told(webhook))
    webhook.refresh_from_db()
    assert webhook.failures == 1
    receiver.answer = status(200)
    assert again(delivery).state == "delivered"
    webhook.refresh_from_db()
    assert webhook.failures == 0


def test_what_is_not_due_is_left_alone(receiver: Receiver) -> None:
    webhook = hook(receiver.url)
    delivery = told(webhook)
    Delivery.objects.update(due_at=timezone.now() + timedelta(minutes=1))
    assert after(delivery).tries == 0
    Delivery.objects.update(due_at=timezone.now())
    Webhook.objects.update(enabled=False)
    assert after(delivery).tries == 0
    assert outbox.due_deliveries() == []
    Delivery.objects.update(created_at=timezone.now() - timedelta(days=2))
    outbox.due_deliveries()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.answer) == ("failed", "The webhook is disabled.")


def test_a_delivery_whose_worker_died_is_due_again(monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> None:
    delivery = told(hook(receiver.url))

    async def die(_: Delivery) -> None:
        raise SystemExit

    with monkeypatch.context() as broken, pytest.raises(SystemExit):
        broken.setattr(sending, "_send", die)
        sending.deliver(delivery.id)
    assert outbox.due_deliveries() == []
    Delivery.objects.update(due_at=timezone.now())  # the lease runs out
    assert outbox.due_deliveries() == [delivery.id]
    assert after(delivery).state == "delivered"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://169.254.169.254/latest", "http://[::1]:1/"])
def test_the_inner_network_is_refused(url: str) -> None:
    delivery = after(told(hook(url, private_allowed=False)))
    assert (delivery.state, delivery.status) == ("pending", None)
    assert "inner network" in delivery.answer, delivery.answer


def test_hosts_that_tools_may_reach_are_not_open_to_webhooks(receiver: Receiver, settings: Any) -> None:
    settings.OUTBOUND_ALLOWED_HOSTS = frozenset({"127.0.0.1"})
    assert after(told(hook(receiver.url, user=make_user(), private_allowed=False))).status is None
    assert receiver.got == []


def test_the_webhooks_of_somebody_disabled_are_silent(receiver: Receiver) -> None:
    owner = make_user()
    webhook = hook(receiver.url, user=owner)
    run = make_run(make_message(make_conversation(owner)))
    delivery = told(webhook)
    owner.is_active = False
    owner.save()
    end_run(run, Run.Status.CANCELLED, "user")
    assert list(webhook.deliveries.all()) == [delivery], "nothing new is told"
    assert outbox.due_deliveries() == []
    assert (after(delivery).tries, receiver.got) == (0, [])


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.answer = status(302, Location="http://169.254.169.254/")
    delivery = after(told(hook(receiver.url)))
    assert (delivery.status, delivery.state, len(receiver.got)) == (302, "pending", 1)


def test_a_huge_answer_is_cut_and_its_status_counts(receiver: Receiver) -> None:
    receiver.answer = endless
    delivery = after(told(hook(receiver.url)))
    assert (delivery.state, len(delivery.answer)) == ("delivered", 500)


@pytest.mark.parametrize("announced", [{}, {"Content-Encoding": "gzip"}])
def test_an_answer_that_inflates_without_end_takes_no_memory(receiver: Receiver, announced: dict[str, str]) -> None:
    bomb = gzip.compress(bytes(200_000_000), 1)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for name, value in {**announced, "Content-Length": str(len(bomb))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(bomb)

    receiver.answer = answer
    tracemalloc.start()
    delivery = after(told(hook(receiver.url)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (delivery.state, delivery.status) == ("delivered", 200) and len(delivery.answer) <= 500
    assert peak < 10_000_000


def test_a_receiver_that_never_answers_costs_a_try(monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> None:
    monkeypatch.setattr(sending, "TIMEOUT_SECONDS", 0.3)
    receiver.answer = never
    delivery = after(told(hook(receiver.url)))
    assert (delivery.status, delivery.state, delivery.tries) == (None, "pending", 1)
    assert "No answer" in delivery.answer


def test_after_many_failures_in_a_row_a_webhook_is_disabled_and_its_owner_told(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver, django_capture_on_commit_callbacks: Any
) -> None:
    notices: list[Any] = []
    monkeypatch.setattr(sending.live, "tell_user", lambda *args: notices.append(args))
    receiver.answer = status(500)
    webhook = hook(receiver.url, user=make_user(), failures=sending.MOST_FAILURES - 1)
    with django_capture_on_commit_callbacks(execute=True):
        after(told(webhook))
    webhook.refresh_from_db()
    assert not webhook.enabled
    assert [(user, news["code"]) for user, (_, news) in notices] == [(webhook.user_id, "webhook_disabled")]


def test_a_receiver_that_is_gone_disables_its_webhook_at_once(receiver: Receiver) -> None:
    receiver.answer = status(410)
    webhook = hook(receiver.url)
    after(told(webhook))
    webhook.refresh_from_db()
    assert not webhook.enabled


def test_an_event_is_written_for_those_whom_it_concerns() -> None:
    ada, bob = make_user("ada"), make_user("bob")
    mine, all_ = hook("https://a.example/", user=ada), hook("https://b.example/", "run.finished", "budget.near")
    hook("https://c.example/", user=bob)
    hook("https://d.example/", "approval.needed", user=ada)
    hook("https://e.example/", user=ada, enabled=False)
    run = make_run(make_message(make_conversation(ada)), "running")
    end_run(run, Run.Status.COMPLETED, "final_answer", answer="A secret answer")
    rows = Delivery.objects.all()
    assert {row.webhook_id for row in rows} == {mine.pk, all_.pk}
    data = rows[0].payload["data"]
    assert (data["run"], data["status"], data["user"]) == (str(run.id), "completed", ada.pk)
    assert "secret" not in str(rows[0].payload)


def test_a_run_whose_end_is_rolled_back_told_nobody() -> None:
    from django.db import transaction

    ada = make_user("ada")
    hook("https://a.example/", user=ada)
    run = make_run(make_message(make_conversation(ada)), "running")
    with pytest.raises(RuntimeError), transaction.atomic():
        end_run(run, Run.Status.COMPLETED, "final_answer", answer="x")
        raise RuntimeError
    assert not Delivery.objects.exists()


def test_another_address_is_not_where_an_administrator_let_it_go() -> None:
    ada = make_user("ada")
    webhook = hook("http://wiki.internal/hook", user=ada)
    assert service.change(ada, webhook.pk, {"url": webhook.url}).private_allowed
    assert not service.change(ada, webhook.pk, {"url": "http://10.0.0.1/"}).private_allowed
