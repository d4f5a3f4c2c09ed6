"""A real Chromium in front of the running product. A page that logs an error fails its test."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

from tests.product import Person, Product

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=780)

OpenPage = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser/" in item.nodeid:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("NO BROWSER TESTS: Chromium is not installed (Debian: apt install chromium)")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        expect.set_options(timeout=45_000)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="package")
def ada(running_product: Product) -> Person:
    """The one who asks in most tests; each test in conversations of its own."""
    return running_product.person()


@pytest.fixture
def visit(chromium: Browser, product: Product) -> Iterator[OpenPage]:
    """`visit(person, "/", viewport=PHONE)` opens a page; with `outage=True` it may log that a server is away."""
    contexts, errors = [], []

    def open_page(
        person: Person | None, path: str = "/", *, viewport: ViewportSize = WIDE, outage: bool = False, **options: Any
    ) -> Page:
        context = chromium.new_context(viewport=viewport, base_url=product.url, **options)
        contexts.append(context)
        if person:
            context.add_cookies([{"name": "sessionid", "value": person.session, "url": product.url}])
        context.set_default_timeout(30_000)
        page = context.new_page()

        def note(message: ConsoleMessage) -> None:
            away = re.search(r"Failed to load resource|WebSocket connection", message.text)
            if message.type in ("error", "warning") and not (outage and away):
                errors.append(message.text)

        page.on("console", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors, "the page logged errors"


def ask(page: Page, question: str) -> None:
    expect(page.locator(".composer[data-ready]")).to_be_visible()
    page.get_by_label("Your message").last.fill(question)
    page.keyboard.press("Enter")


def answers(page: Page, count: int = 1) -> None:
    """Waits until so many runs have ended on the page."""
    expect(page.locator(".answer-foot:visible")).to_have_count(count)
