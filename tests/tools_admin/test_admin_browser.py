"""The admin in a real browser: every page loads without a complaint on the console, the content policy's included."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.product import Person, Product

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed"),
]

LISTS = [
    "tools_admin/connector",
    "tools_admin/tool",
    "tools_admin/provider",
    "tools_admin/languagemodel",
    "tools_admin/route",
    "tools_admin/agent",
    "accounts/user",
    "accounts/apikey",
    "auth/group",
]
OWN_PAGES = {"tools_admin/provider": "check", "tools_admin/route": "try"}
RECORD = ["conversations/run", "conversations/call", "conversations/inspection"]


@pytest.fixture
def administrator(product: Product) -> Person:
    return product.person(staff=True)


@pytest.fixture
def page(product: Product, administrator: Person) -> Iterator[Any]:
    """A tab of a signed-in administrator; whatever the console complains about fails the test."""
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        context = browser.new_context(base_url=product.url)
        context.add_cookies([{"name": "sessionid", "value": administrator.session, "url": product.url}])
        tab = context.new_page()
        complaints: list[str] = []
        tab.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        yield tab
        browser.close()
    assert complaints == []


def test_every_page_loads_in_silence(page: Any) -> None:
    for path in ["/admin/", *(f"/admin/{name}/" for name in [*LISTS, *RECORD])]:
        assert page.goto(path).ok, path
    for name in LISTS:
        if name != "tools_admin/tool":
            assert page.goto(f"/admin/{name}/add/").ok, name
        if name != "auth/group":
            page.goto(f"/admin/{name}/")
            row = page.locator(f"a[href*='/admin/{name}/'][href*='/change/']").first
            assert page.goto(row.get_attribute("href")).ok, name
            if name in OWN_PAGES:
                own = row.get_attribute("href").partition("/change/")[0]
                assert page.goto(f"{own}/{OWN_PAGES[name]}/").ok, name


def test_a_tool_is_switched_off_in_the_list(product: Product, page: Any) -> None:
    page.goto("/admin/tools_admin/tool/")
    switch = page.locator("input[type=checkbox][name$=enabled]").first
    assert switch.is_checked()
    switch.click()
    page.locator("[name=_save]").click()
    page.wait_for_url("**/tool/")
    assert not page.locator("input[type=checkbox][name$=enabled]").first.is_checked()
    assert product.sql("SELECT count(*) FROM tools_admin_tool WHERE NOT enabled") == [(1,)]
    product.sql("UPDATE tools_admin_tool SET enabled = true RETURNING id")


def test_a_new_key_is_shown_and_works(product: Product, page: Any) -> None:
    page.goto("/admin/accounts/apikey/add/")
    page.fill("#id_name", "Nightly")
    page.locator("[name=_save]").click()
    text = page.locator("text=/aa_[A-Za-z0-9_-]{43}/").inner_text()
    answer = page.request.get("/api/v1/status", headers={"Authorization": f"Bearer {text}"})
    assert answer.ok
