"""The composer: keys, drafts, limits."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, answers
from tests.product import Person, Product


@pytest.fixture
def page(visit: OpenPage, ada: Person) -> Page:
    page = visit(ada, permissions=["clipboard-read", "clipboard-write"])
    expect(page.locator(".composer[data-ready]")).to_be_visible()
    return page


def test_enter_sends_and_shift_enter_does_not(page: Page) -> None:
    area = page.get_by_label("Your message").last
    area.press_sequentially("one")
    page.keyboard.press("Shift+Enter")
    area.press_sequentially("two")
    expect(area).to_have_value("one\ntwo")
    page.keyboard.press("Enter")
    expect(area).to_have_value("")
    expect(page.locator(".bubble")).to_have_text("one\ntwo")


@pytest.mark.parametrize("how", [{"isComposing": True}, {"keyCode": 229}])
def test_enter_that_ends_a_composition_does_not_send(page: Page, how: dict[str, object]) -> None:
    area = page.get_by_label("Your message").last
    area.fill("かんじ")
    area.evaluate(
        "(a, how) => a.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, ...how}))", how
    )
    expect(area).to_have_value("かんじ")
    expect(page.locator(".bubble")).to_have_count(0)


def test_an_empty_message_cannot_be_sent(page: Page) -> None:
    area = page.get_by_label("Your message").last
    for text in ("", "  \n "):
        area.fill(text)
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Send")).to_be_disabled()
    expect(page.locator(".bubble")).to_have_count(0)


def test_a_text_that_is_too_long_is_refused_before_it_is_sent(page: Page) -> None:
    page.get_by_label("Your message").last.fill("x" * 100_001)
    expect(page.get_by_text("100,001 characters: at most 100,000 can be sent.")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_disabled()


def test_a_million_pasted_characters_do_not_freeze_the_page(page: Page) -> None:
    page.evaluate(
        "() => navigator.clipboard.writeText('a line of fifty characters, as long as lines are\\n'.repeat(20000))"
    )
    page.evaluate("""() => {
        window.longest = 0;
        let last = performance.now();
        const beat = () => {
            const now = performance.now();
            window.longest = Math.max(window.longest, now - last);
            last = now;
            setTimeout(beat);
        };
        beat();
    }""")  # fmt: skip
    page.get_by_label("Your message").last.focus()
    page.keyboard.press("Control+v")
    expect(page.get_by_text(re.compile("Not pasted: .* at most 100,000"))).to_be_visible()
    assert page.evaluate("window.longest") < 200


def test_a_draft_survives_signing_out(page: Page, product: Product, ada: Person) -> None:
    page.get_by_label("Your message").last.fill("An unfinished thought")
    page.context.clear_cookies()
    page.goto("/")
    page.get_by_label("User name or e-mail").fill(ada.username)
    page.get_by_label("Password").fill(ada.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_label("Your message").last).to_have_value("An unfinished thought")


def test_each_conversation_has_its_own_draft(page: Page) -> None:
    area = page.get_by_label("Your message").last
    area.fill("Hello")
    page.keyboard.press("Enter")
    answers(page)
    area.fill("to be continued")
    page.get_by_role("link", name="New chat").click()
    expect(page.get_by_label("Your message").last).to_have_value("")
    page.go_back()
    expect(page.get_by_label("Your message").last).to_have_value("to be continued")
