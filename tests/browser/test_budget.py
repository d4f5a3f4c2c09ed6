"""What somebody with a budget sees while it shrinks: the rest, one warning, and words when it is used up."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, answers, ask
from tests.conversations.test_budgets import SET_PRICES, give_budget, used
from tests.product import Person, Product


@pytest.fixture
def person(product: Product) -> Iterator[Person]:
    product.execute(SET_PRICES, 1_000_000, 10_000_000, 200)
    yield product.person()
    product.execute(SET_PRICES, 0, 0, 4_096)


def test_a_budget_that_shrinks_is_seen_warned_of_and_ends_with_words(
    visit: OpenPage, product: Product, person: Person
) -> None:
    give_budget(product, person, 1_000_000, used=790_000)
    page = visit(person)
    rest = page.locator(".budget-left")
    expect(rest).to_have_text("0.21 USD left")
    expect(rest).not_to_have_attribute("data-low", "")
    product.execute("UPDATE accounts_budget SET used = 800000 WHERE user_id = %s", person.id)
    ask(page, "What is 12 * 13?")
    expect(page.get_by_text(f"% of the budget of {person.username} are used or set aside")).to_be_visible()
    answers(page, 1)
    expect(rest).to_have_attribute("data-low", "")
    assert used(product, person) > 800_000
    product.execute("UPDATE accounts_budget SET used = 999999 WHERE user_id = %s", person.id)
    ask(page, "And 13 * 13?")
    answers(page, 2)
    expect(page.get_by_text("The budget is used up")).to_be_visible()
    rest.click()
    expect(page.get_by_role("heading", name="Usage")).to_be_visible()
