"""The first thing anybody does: open the printed link, become the administrator, be in the chat."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.product import Product


@pytest.fixture
def link(product: Product) -> Iterator[str]:
    """As printed by a start that finds no administrator."""
    product.execute("UPDATE accounts_user SET is_active = false WHERE is_superuser")
    yield product.manage(
        "shell", "--no-imports", "-c", "from accounts.services import setup_link; print(setup_link())"
    ).strip()
    product.execute(
        "DELETE FROM usersessions_usersession USING accounts_user u WHERE u.id = user_id AND username = 'grace'"
    )
    product.execute("DELETE FROM accounts_user WHERE username = 'grace'")
    product.execute("UPDATE accounts_user SET is_active = true WHERE is_superuser")


def test_the_link_of_the_first_start_makes_an_administrator_who_is_signed_in(
    product: Product, visit: OpenPage, link: str
) -> None:
    page = visit(None, link, outage=True)  # the used link answers 404 below
    page.get_by_label("Username").fill("grace")
    page.get_by_label("Password", exact=True).fill("correct-horse-battery")
    page.get_by_label("Password confirmation").fill("correct-horse-battery")
    page.get_by_role("button", name="Create account and start").click()
    expect(page).to_have_url(re.compile(r"/$"))
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    assert product.sql("SELECT is_superuser FROM accounts_user WHERE username = 'grace'") == [(True,)]
    page.goto(f"{product.url}{link}")
    expect(page.get_by_label("Username")).to_have_count(0)
