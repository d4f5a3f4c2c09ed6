"""People choose who answers."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE, OpenPage, answers, ask
from tests.product import Person, Product

MAKE = """
from tools_admin.models import Agent
agent = Agent.objects.create(
    name="Poet with a name that is rather long for a header", icon="pen-line", description="Answers in verse.",
    instructions="Rhyme.", starters=["Write a limerick"],
)
print(agent.pk)
"""
END = "from tools_admin.models import Agent; Agent.objects.filter(pk={}).delete()"


@pytest.fixture
def poet(product: Product) -> Iterator[int]:
    number = int(product.manage("shell", "--no-imports", "-c", MAKE))
    yield number
    product.manage("shell", "--no-imports", "-c", END.format(number))


@pytest.fixture
def person(product: Product) -> Person:
    return product.person()


def test_an_agent_is_chosen_for_a_new_conversation(
    visit: OpenPage, product: Product, person: Person, poet: int
) -> None:
    page = visit(person)
    page.get_by_role("button", name="Agent:").click()
    page.get_by_role("link", name="Poet with").click()
    expect(page.get_by_text("Answers in verse.").first).to_be_visible()
    before = len(product.model.requests)
    page.get_by_role("button", name="Write a limerick").click()
    answers(page)
    assert "Rhyme." in str(product.model.requests[before]["messages"][0])
    page.reload()
    expect(page.get_by_role("button", name="Agent: Poet with")).to_be_visible()


def test_in_a_conversation_another_one_answers_from_then_on(
    visit: OpenPage, product: Product, person: Person, poet: int
) -> None:
    page = visit(person)
    ask(page, "Hello")
    answers(page)
    page.get_by_role("button", name="Agent:").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Poet with").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("From now on Poet with")).to_be_visible()
    expect(page.get_by_role("button", name="Agent: Poet with")).to_be_visible()
    before = len(product.model.requests)
    ask(page, "And now?")
    answers(page, 2)
    assert "Rhyme." in str(product.model.requests[before]["messages"][0])
    page.reload()
    expect(page.get_by_role("button", name="Agent: Poet with")).to_be_visible()


def test_on_a_phone_the_choice_fits(visit: OpenPage, person: Person, poet: int) -> None:
    page = visit(person, f"/?agent={poet}", viewport=PHONE, has_touch=True)
    page.get_by_role("button", name="Agent: Poet with").tap()
    menu = page.locator("#agent-menu")
    expect(menu).to_be_visible()
    box = menu.bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_with_one_agent_there_is_nothing_to_choose(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    expect(page.locator(".composer[data-ready]")).to_be_visible()
    expect(page.get_by_role("button", name="Agent:")).to_have_count(0)
