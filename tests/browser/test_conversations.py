"""The list, pinning, narrow windows, the keyboard."""

import uuid

from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, OpenPage, answers, ask
from tests.product import Person


def begin(page: Page) -> str:
    """A conversation with a name of its own."""
    name = f"Topic {uuid.uuid4().hex[:8]}"
    ask(page, name)
    answers(page)
    return name


def choose(page: Page, name: str, action: str) -> None:
    item = page.get_by_role("listitem").filter(has_text=name)
    item.hover()
    item.get_by_role("button", name="Actions").click()
    page.get_by_role("button", name=action).click()


def test_rename_pin_archive_delete(visit: OpenPage, ada: Person) -> None:
    page = visit(ada)
    name = begin(page)
    choose(page, name, "Rename")
    page.get_by_role("textbox", name="Name").fill(f"{name} renamed")
    page.get_by_role("button", name="Rename").last.click()
    expect(page.get_by_role("heading", name=f"{name} renamed")).to_be_visible()

    choose(page, name, "Pin to the top")
    expect(page.get_by_role("region", name="Pinned").get_by_text(name)).to_be_visible()
    choose(page, name, "Archive")
    expect(page.get_by_role("navigation").get_by_text(name)).to_have_count(0)
    page.goto("/?archived=1")
    choose(page, name, "Delete")
    expect(page.get_by_text("removed for good")).to_be_visible()
    page.get_by_role("button", name="Delete").last.click()
    expect(page.get_by_role("listitem").filter(has_text=name)).to_have_count(0)
    page.goto(f"/?archived=1&q={name}")
    expect(page.get_by_text("Nothing found.")).to_be_visible()


def test_search_narrows_the_list(visit: OpenPage, ada: Person) -> None:
    page = visit(ada)
    name = begin(page)
    page.keyboard.press("Control+k")
    page.keyboard.type(name.upper())
    expect(page.locator(".conversation:visible")).to_have_count(1)
    page.keyboard.type("nothing like it")
    expect(page.get_by_text("Enter searches all conversations")).to_be_visible()


def test_pinned_messages_are_marked_and_stay_so(visit: OpenPage, ada: Person) -> None:
    page = visit(ada)
    begin(page)
    answer = page.locator(".answer-block")
    answer.get_by_role("button", name="Pin").click()
    expect(answer.get_by_text("Pinned")).to_be_visible()
    expect(page.get_by_text("the agent keeps this message in mind")).to_be_visible()
    page.reload()
    expect(answer.get_by_text("Pinned")).to_be_visible()
    answer.get_by_role("button", name="Pin").click()
    expect(page.get_by_text("Unpinned")).to_be_visible()
    page.reload()
    expect(answer.get_by_text("Pinned")).to_be_hidden()


def test_on_a_phone_the_list_is_a_drawer(visit: OpenPage, ada: Person) -> None:
    page = visit(ada, viewport=PHONE, has_touch=True)
    name = begin(page)
    expect(page.get_by_role("link", name="New chat")).to_be_hidden()
    page.get_by_role("button", name="Conversations").click()
    expect(page.get_by_role("navigation").get_by_text(name)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("navigation")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.get_by_label("Your message").last).to_be_in_viewport()


def test_the_keyboard_reaches_everything(visit: OpenPage, ada: Person) -> None:
    page = visit(ada)
    begin(page)
    page.keyboard.press("Control+k")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent.trim()"
            )
        )
    assert {"Actions", "Copy", "Every call of this run", "Your message"} <= reached
    page.get_by_role("button", name="Actions").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Rename")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="Pin to the top")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#conversation-menu")).to_be_hidden()
