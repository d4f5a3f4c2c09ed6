"""The main journey: sign in, ask, watch, read, come back."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, answers, ask
from tests.product import Person, Product


def test_from_signing_in_to_an_answer_that_is_still_there(visit: OpenPage, product: Product, ada: Person) -> None:
    page = visit(None)
    page.get_by_label("User name or e-mail").fill(ada.username)
    page.get_by_label("Password").fill(ada.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()

    ask(page, "What is 123 * 45?")
    answers(page)
    expect(page).to_have_url(re.compile(r"/c/[0-9a-f-]{36}/$"))
    expect(page.locator(".answer")).to_contain_text("5535")
    expect(page.locator(".answer-foot")).to_contain_text(re.compile(r"fake-model.*1 step.*tokens"))
    expect(page.get_by_role("navigation").get_by_text("What is 123 * 45?").first).to_be_visible()

    live = page.locator(".thread").inner_text()
    page.reload()
    expect(page.locator(".answer.plain")).to_have_count(0)
    assert page.locator(".thread").inner_text() == live


def test_steps_show_what_went_in_and_out(visit: OpenPage, ada: Person) -> None:
    page = visit(ada)
    ask(page, "What is 123 * 45?")
    answers(page)
    page.get_by_text(re.compile(r"Worked .* · 1 step")).click()
    step = page.locator(".step")
    expect(step.locator("summary")).to_contain_text("calculator")
    expect(step).to_have_attribute("data-state", "done")
    step.locator("summary").click()
    expect(step).to_contain_text("123 * 45 = 5535")
    page.get_by_role("link", name="Every call of this run").click()
    expect(page.locator(".call strong", has_text="calculator")).to_be_visible()
    expect(page.locator(".answer p")).to_contain_text("5535")


def test_a_starter_asks_its_question(visit: OpenPage, ada: Person) -> None:
    page = visit(ada)
    starter = page.locator("[data-starter]").first
    question = starter.inner_text()
    expect(page.locator(".composer[data-ready]")).to_be_visible()
    starter.click()
    expect(page.locator(".bubble")).to_have_text(question)
    answers(page)


def test_nobody_else_sees_it(visit: OpenPage, product: Product, ada: Person) -> None:
    page = visit(ada)
    ask(page, "Only for me")
    answers(page)
    stranger = visit(product.person(), outage=True)  # a page that is not there is logged as a failed load
    expect(stranger.get_by_text("Your conversations appear here.")).to_be_visible()
    stranger.goto(page.url)
    expect(stranger.get_by_role("heading", name="Nothing here")).to_be_visible()


def test_other_tabs_follow(visit: OpenPage, ada: Person) -> None:
    page = visit(ada)
    ask(page, "What is 6 * 7?")
    answers(page)
    other = visit(ada, page.url)
    ask(page, "And 123 * 45?")
    answers(page, 2)
    answers(other, 2)
    assert other.locator(".thread").inner_text() == page.locator(".thread").inner_text()


def test_a_message_sent_while_it_works_is_added(visit: OpenPage, product: Product, ada: Person) -> None:
    product.model.token_delay = 0.02
    page = visit(ada)
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    ask(page, "A short one")
    expect(page.get_by_text("Added while it was working")).to_be_visible()
    expect(page.locator(".question")).to_have_count(2)
    page.get_by_role("button", name="Stop").click()
    answers(page)


def test_reading_needs_no_scripts(visit: OpenPage, ada: Person) -> None:
    page = visit(ada)
    ask(page, "What is 123 * 45?")
    answers(page)
    plain = visit(ada, page.url, java_script_enabled=False)
    expect(plain.locator(".answer")).to_contain_text("5535")
    expect(plain.get_by_text("sending needs it")).to_be_visible()
    expect(plain.locator("button.needs-js:visible, .composer:visible")).to_have_count(0)
    plain.get_by_role("link", name="Every call of this run").click()
    expect(plain.locator(".call strong", has_text="calculator")).to_be_visible()
