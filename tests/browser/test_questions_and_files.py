"""Questions of an agent and files that it makes, in the page."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE, OpenPage, answers, ask
from tests.conversations.test_tools_of_a_run import ADD, REMOVE
from tests.fake_model import think
from tests.product import Person, Product

PAGE = "<h1>Report</h1><p>All is well.</p>"


@pytest.fixture
def person(product: Product) -> Iterator[Person]:
    """Somebody whose agent asks about colours, and makes a page for whoever wants a report."""

    def brain(request: dict[str, Any]) -> dict[str, Any]:
        last = request["messages"][-1]
        text = str(last["content"])
        if last["role"] == "user" and request.get("tools") and "colour" in text:
            asked = {
                "question": "Which colour shall the **shed** have?\nBoth are in stock.",
                "choices": ["Red", "Blue"],
            }
            return {"calls": [{"name": "ask_user", "arguments": asked}]}
        if last["role"] == "user" and request.get("tools") and "report" in text:
            return {"calls": [{"name": "make_file", "arguments": {"filename": "report.html", "content": PAGE}}]}
        return {"text": "You said blue." if "user answers: Blue" in str(request["messages"]) else "Done."}

    for name in ("ask_user", "make_file"):
        product.execute(ADD.format(name))
    product.model.brain = brain
    yield product.person()
    product.model.brain = think
    for name in ("ask_user", "make_file"):
        product.execute(REMOVE.format(name))


@pytest.mark.parametrize("options", [{}, {"viewport": PHONE, "color_scheme": "dark"}])
def test_a_question_is_answered_in_the_page(visit: OpenPage, person: Person, options: dict[str, Any]) -> None:
    page = visit(person, **options)
    ask(page, "Paint it in my colour.")
    card = page.locator("[data-inquiry]").last
    expect(card).to_contain_text("Which colour shall the **shed** have?")  # plain text, whatever a model writes
    expect(page.locator(".work > summary")).to_contain_text("Waiting for your answer")
    card.get_by_role("button", name="Blue").click()
    page.keyboard.press("Tab")
    card.get_by_role("button", name="Answer", exact=True).click()
    answers(page)
    expect(page.locator(".answer")).to_have_text("You said blue.")
    expect(card).to_have_count(0)


def test_a_question_can_be_left_unanswered_on_the_page_of_what_waits(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    ask(page, "Paint it in my colour.")
    expect(page.locator("[data-inquiry]").last).to_be_visible()
    page.goto("/approvals/")
    card = page.locator("[data-inquiry]")
    expect(card).to_contain_text("Which colour")
    card.get_by_role("button", name="Do not answer").click()
    expect(page.locator(".request-settled")).to_have_text("Not answered; the run goes on.")


def test_a_file_can_be_looked_at_in_a_locked_frame_and_downloaded(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    ask(page, "Write me a report.")
    answers(page)
    file = page.locator(".file")
    expect(file).to_contain_text("report.html")
    file.get_by_role("button", name="Preview").click()
    expect(file.frame_locator("iframe").get_by_role("heading")).to_have_text("Report")
    expect(file.locator("iframe")).to_have_attribute("sandbox", "")
    with page.expect_download() as download:
        file.get_by_role("link").click()
    assert download.value.suggested_filename == "report.html"
    page.reload()
    expect(page.locator(".file")).to_contain_text("report.html")
