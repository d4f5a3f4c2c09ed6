"""Parts that are down: it is said in words, and nothing is lost."""

import json
import re

from playwright.sync_api import WebSocketRoute, expect

from tests.browser.conftest import OpenPage, answers, ask
from tests.product import Person, Product


def test_what_is_sent_without_a_server_goes_out_once_when_it_is_back(
    visit: OpenPage, product: Product, ada: Person
) -> None:
    page = visit(ada, outage=True)
    ask(page, "Hello")
    answers(page)
    product.end("web")
    ask(page, "Sent into the void")
    expect(page.get_by_text("Not sent yet – goes out when the connection is back")).to_be_visible()
    expect(page.get_by_text("No connection. Trying again; what you write is kept.")).to_be_visible()
    product.restore()
    answers(page, 2)
    expect(page.get_by_text("Not sent yet")).to_be_hidden()
    expect(page.get_by_text("No connection")).to_be_hidden()
    assert product.sql("SELECT count(*) FROM conversations_message WHERE content = 'Sent into the void'") == [(1,)]


def test_two_messages_of_a_new_chat_make_one_conversation(visit: OpenPage, product: Product, ada: Person) -> None:
    page = visit(ada, outage=True)
    product.end("web")
    ask(page, "Beforehand into the void")
    ask(page, "Second into the void")
    expect(page.get_by_text("Not sent yet")).to_have_count(2)
    product.restore()
    expect(page.get_by_text("Not sent yet")).to_have_count(0)
    query = "SELECT DISTINCT conversation_id FROM conversations_message WHERE content LIKE %s"
    rows = product.sql(query, "%nd into the void%")
    assert len(rows) == 1


def test_an_unsent_message_outlives_the_page(visit: OpenPage, product: Product, ada: Person) -> None:
    page = visit(ada, outage=True)
    page.evaluate("() => { window.WebSocket.prototype.send = () => {}; }")
    ask(page, "Kept over a reload")
    expect(page.get_by_text("Not sent yet")).to_be_visible()
    page.reload()
    answers(page)
    expect(page.locator(".bubble")).to_have_text("Kept over a reload")


def test_an_unsent_message_can_be_taken_back(visit: OpenPage, ada: Person) -> None:
    page = visit(ada)
    page.evaluate("() => { window.WebSocket.prototype.send = () => {}; }")
    ask(page, "Second thoughts")
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_label("Your message").last).to_have_value("Second thoughts")
    page.reload()
    expect(page.locator(".bubble")).to_have_count(0)


def test_a_silent_model_is_named_and_the_message_answered_later(visit: OpenPage, product: Product, ada: Person) -> None:
    page = visit(ada)
    product.model.stop()
    ask(page, "Are you there?")
    expect(
        page.get_by_text("The model is not answering. Your message is kept and will be tried again.")
    ).to_be_visible()
    product.model.start()
    answers(page)
    expect(page.get_by_text("The model is not answering")).to_be_hidden()


def test_the_end_of_a_run_is_seen_after_a_lost_connection(visit: OpenPage, product: Product, ada: Person) -> None:
    product.model.token_delay = 0.02
    page = visit(ada, outage=True)
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    product.end("web")
    product.model.token_delay = 0.0
    product.restore()
    answers(page)
    expect(page.locator(".answer")).to_contain_text("word399")


def test_lost_frames_are_noticed_and_asked_for(visit: OpenPage, product: Product, ada: Person) -> None:
    page = visit(ada)
    frames = {"seen": 0, "lost": 0}

    def lossy(route: WebSocketRoute) -> None:
        def forward(message: str | bytes) -> None:
            frames["seen"] += 1
            if frames["seen"] % 7 == 0 and "run" in json.loads(message):
                frames["lost"] += 1
            else:
                route.send(message)

        route.connect_to_server().on_message(forward)

    page.route_web_socket(re.compile("/ws/"), lossy)
    page.reload()
    product.model.token_delay = 0.01
    for count, question in enumerate(["What is 123 * 45?", "Tell me a story", "What is 123 * 45?"]):
        ask(page, question)
        answers(page, count + 1)
    assert frames["lost"] > 5
    live = page.locator(".thread").inner_text()
    page.unroute_all()
    page.reload()
    expect(page.locator(".answer.plain")).to_have_count(0)
    assert page.locator(".thread").inner_text() == live


def test_a_turn_that_came_and_went_during_a_lost_connection_is_there(visit: OpenPage, ada: Person) -> None:
    page, other = visit(ada), visit(ada, outage=True)
    ask(page, "What is 6 * 7?")
    answers(page)
    other.goto(page.url)
    answers(other)
    other.context.set_offline(True)
    expect(other.get_by_text("No connection")).to_be_visible()
    ask(page, "And 123 * 45?")
    answers(page, 2)
    other.context.set_offline(False)
    answers(other, 2)
    assert other.locator(".thread").inner_text() == page.locator(".thread").inner_text()


def test_work_that_was_interrupted_says_so_and_goes_on(visit: OpenPage, product: Product, ada: Person) -> None:
    product.model.token_delay = 0.02
    page = visit(ada)
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    product.end("worker")
    product.model.token_delay = 0.0
    product.restore()
    answers(page)
    expect(page.locator(".answer")).to_contain_text("word399")
    page.locator(".work > summary").click()
    expect(page.get_by_text("Went on after an interruption")).to_be_visible()


def test_a_message_whose_confirmation_is_late_is_shown_once(visit: OpenPage, ada: Person) -> None:
    page = visit(ada)
    ask(page, "Hello")
    answers(page)

    def unconfirmed(route: WebSocketRoute) -> None:
        def forward(message: str | bytes) -> None:
            body = json.loads(message)
            if "ack" not in body.get("type", "") and body.get("channel") not in ("message", "run"):
                route.send(message)

        route.connect_to_server().on_message(forward)

    page.route_web_socket(re.compile("/ws/"), unconfirmed)
    with page.expect_response(lambda response: "since=" in response.url and response.status == 200):
        page.reload()
        ask(page, "Heard, not confirmed")
    answers(page, 2)
    expect(page.locator(".bubble", has_text="Heard, not confirmed")).to_have_count(1)
