"""A list of hundreds of conversations: it goes on as one scrolls, and search looks into messages."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.product import Person, Product

MAKE = """
from conversations.models import *
made = Conversation.objects.bulk_create(
    Conversation(user_id={person}, title=f"Talk {{n}}" + " about a long matter" * (n % 3)) for n in range(250)
)
text = "The hidden word is Rumpelstilzchen."
message = Message.objects.create(conversation=made[0], role="assistant", content=text)
Conversation.objects.filter(pk=made[0].pk).update(leaf=message)
"""


@pytest.fixture
def person(product: Product) -> Person:
    someone = product.person()
    product.manage("shell", "--no-imports", "-c", MAKE.format(person=someone.id))
    return someone


def test_the_list_goes_on_as_one_scrolls(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    items = page.locator(".conversations .conversation")
    expect(items).to_have_count(100)
    page.locator(".conversations").evaluate("list => list.scrollTo(0, list.scrollHeight)")
    expect(items).to_have_count(200)
    page.get_by_role("link", name="Older conversations").focus()
    page.keyboard.press("Enter")
    expect(items).to_have_count(250)
    expect(page.get_by_role("link", name="Older conversations")).to_have_count(0)
    assert len(set(items.locator("a").evaluate_all("links => links.map(link => link.href)"))) == 250


def test_search_looks_into_messages(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    page.keyboard.press("Control+k")
    page.keyboard.type("rumpelst")
    expect(page.get_by_text("Enter searches all conversations and their messages")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator(".conversations .conversation:visible")).to_have_count(1)
    page.locator(".conversations .conversation a").click()
    expect(page.locator(".answer")).to_contain_text("Rumpelstilzchen")


def test_without_scripts_older_ones_are_on_the_next_page(visit: OpenPage, person: Person) -> None:
    page = visit(person, java_script_enabled=False)
    page.get_by_role("link", name="Older conversations").click()
    page.get_by_role("link", name="Older conversations").click()
    expect(page.locator(".conversations .conversation")).to_have_count(50)
