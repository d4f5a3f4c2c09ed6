"""One's own documents: added, read, asked about, and opened where the answer cites them."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, answers, ask
from tests.paperwork import docx, locked_pdf
from tests.product import Product
from tests.tools_admin.knowledge.in_product import close_handbook, open_handbook

RULES = docx("# Travel", "Trains come first.", "# Hotels", "A hotel may cost 120 euros a night.")


@pytest.fixture(scope="module")
def handbook(running_product: Product) -> Iterator[int]:
    yield open_handbook(running_product)
    close_handbook(running_product)


def upload(name: str, content: bytes) -> Any:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def test_a_document_is_added_asked_about_and_opened_at_the_cited_passage(
    visit: OpenPage, product: Product, handbook: int
) -> None:
    open_handbook(product)
    page = visit(product.person(), "/documents/", outage=True)  # the empty file is refused
    expect(page.get_by_text("You have no documents yet.")).to_be_visible()
    files = [upload("rules.docx", RULES), upload("locked.pdf", locked_pdf("x", password="y")), upload("none.txt", b"")]
    page.locator("input[type=file]").set_input_files(files)
    rules = page.locator("[data-documents] li", has_text="rules.docx")
    expect(rules).to_have_attribute("data-status", "ready")
    expect(page.locator("li", has_text="locked.pdf")).to_contain_text("protected by a password")
    expect(page.locator("li", has_text="none.txt")).to_contain_text("The file is empty.")
    page.reload()
    expect(page.locator("[data-documents] li")).to_have_count(2)

    page.goto("/")
    ask(page, "What does the handbook say about the price of lodging?")
    answers(page)
    link = page.locator(".answer a", has_text="rules.docx, Hotels")
    with page.expect_popup() as opened:
        link.click()
    cited = opened.value.locator("[aria-current=true]")
    expect(cited).to_contain_text("A hotel may cost 120 euros a night.")
    expect(opened.value.get_by_text("Trains come first.")).to_be_visible()

    stranger = visit(product.person(), "/documents/")
    assert stranger.request.get(opened.value.url).status == 404
    page.goto("/documents/")
    page.get_by_role("button", name="Delete rules.docx").click()
    expect(page.get_by_text("rules.docx is deleted.")).to_be_visible()
    assert page.request.get(opened.value.url).status == 404
