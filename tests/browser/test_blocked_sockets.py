"""A proxy refuses WebSockets: the page finds another way by itself."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, answers, ask
from tests.browser.proxy import without_websockets
from tests.product import Person, Product


@pytest.fixture
def page(visit: OpenPage, product: Product, ada: Person) -> Iterator[Page]:
    with without_websockets(product.port) as address:
        page = visit(ada, f"{address}/", outage=True)
        expect(page.get_by_text("The live connection is blocked here.")).to_be_visible()
        yield page
        page.close()


def test_asking_and_adding_work_all_the_same(page: Page) -> None:
    ask(page, "What is 123 * 45?")
    answers(page)
    expect(page).to_have_url(re.compile(r"/c/[0-9a-f-]{36}/$"))
    expect(page.locator(".answer")).to_contain_text("5535")
    expect(page.locator(".conversation [aria-current=page]")).to_contain_text("What is 123 * 45?")
    ask(page, "And 6 * 7?")
    answers(page, 2)
    expect(page.get_by_text("Not sent yet")).to_have_count(0)
    live = page.locator(".thread").inner_text()
    page.reload()
    expect(page.locator(".answer.plain")).to_have_count(0)
    assert page.locator(".thread").inner_text() == live


def test_an_answer_streams_and_can_be_stopped_and_tried_again(page: Page, product: Product) -> None:
    product.model.token_delay = 0.02
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped. This is what there was until then.")).to_be_visible()
    product.model.token_delay = 0.0
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".answer").last).to_contain_text("word399")


def test_what_is_sent_without_a_server_goes_out_when_it_is_back(page: Page, product: Product) -> None:
    ask(page, "Hello")
    answers(page)
    product.end("web")
    ask(page, "Around the wall")
    expect(page.get_by_text("Not sent yet – goes out when the connection is back")).to_be_visible()
    product.restore()
    answers(page, 2)
    assert product.sql("SELECT count(*) FROM conversations_message WHERE content = 'Around the wall'") == [(1,)]


def test_what_happens_on_other_devices_appears_too(page: Page, visit: OpenPage, ada: Person) -> None:
    ask(page, "Hello")
    answers(page)
    other = visit(ada, re.sub(r"^.*(?=/c/)", "", page.url))
    ask(other, "From elsewhere")
    answers(other, 2)
    expect(page.locator(".answer-foot:visible")).to_have_count(2, timeout=45_000)
    assert page.locator(".thread").inner_text() == other.locator(".thread").inner_text()
