"""Stop, and what comes after it."""

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, answers, ask
from tests.product import Person, Product


def test_stop_keeps_what_there_was_and_nothing_spins(visit: OpenPage, product: Product, ada: Person) -> None:
    product.model.token_delay = 0.02
    page = visit(ada)
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    page.get_by_role("button", name="Stop").click()
    for _ in ("live", "reloaded"):
        expect(page.get_by_text("Stopped. This is what there was until then.")).to_be_visible()
        expect(page.locator(".answer")).to_contain_text("word3")
        expect(page.locator(".spinning:visible")).to_have_count(0)
        expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        page.reload()


def test_a_stopped_run_is_tried_again(visit: OpenPage, product: Product, ada: Person) -> None:
    product.model.token_delay = 0.02
    page = visit(ada)
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    product.model.token_delay = 0.0
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".answer-block").last).to_have_attribute("data-status", "completed")
    expect(page.locator(".answer").last).to_contain_text("word399")


def test_after_a_reload_the_run_goes_on_and_can_be_stopped(visit: OpenPage, product: Product, ada: Person) -> None:
    product.model.token_delay = 0.03
    page = visit(ada)
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    page.reload()
    expect(page.locator(".answer")).to_contain_text("word0 word1 word2 word3")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped. This is what there was until then.")).to_be_visible()


def test_a_run_goes_on_while_one_looks_elsewhere(visit: OpenPage, product: Product, ada: Person) -> None:
    product.model.token_delay = 0.02
    page = visit(ada)
    ask(page, "Tell me a story about elsewhere")
    expect(page.locator(".answer")).to_contain_text("word3")
    page.get_by_role("link", name="New chat").click()
    item = page.get_by_role("listitem").filter(has_text="story about elsewhere")
    expect(item.locator(".mark")).to_be_visible()
    item.get_by_role("link").click()
    expect(page.locator(".answer")).to_contain_text("word0 word1")
    product.model.token_delay = 0.0
    answers(page)
    expect(page.locator(".answer")).to_contain_text("word399")
    expect(page.locator(".conversation .mark:visible")).to_have_count(0)
