"""Files of messages in the page: added, shown, kept with the draft, sent."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.browser.conftest import PHONE, WIDE, OpenPage, answers
from tests.conversations.test_attachments_in_runs import said
from tests.fake_model import think
from tests.paperwork import locked_pdf
from tests.pictures import picture
from tests.product import Person, Product

PHOTO: FilePayload = {"name": "photo.png", "mimeType": "image/png", "buffer": picture("PNG", (640, 400), "teal")}
NOTES: FilePayload = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"The secret is 42."}
LONG_NAME = "Donaudampfschifffahrtsgesellschaftskapitaenspatentverlaengerungsantrag-2026-endgueltig-final.txt"

# Files as the clipboard and a drag carry them.
GIVE = """([type, name]) => {
    const data = new DataTransfer();
    data.items.add(new File(["Some text of a file."], name, { type: "text/plain" }));
    const target = document.querySelector(".composer textarea");
    const options = { dataTransfer: data, clipboardData: data, bubbles: true, cancelable: true };
    if (type === "paste") target.dispatchEvent(new ClipboardEvent("paste", options));
    else for (const kind of ["dragenter", "dragover", "drop"]) target.dispatchEvent(new DragEvent(kind, options));
}"""


@pytest.fixture
def person(product: Product) -> Iterator[Person]:
    """Somebody whose model says what it was shown."""

    def brain(request: dict[str, Any]) -> dict[str, Any]:
        last = request["messages"][-1]
        shown = [] if isinstance(last["content"], str) else [p for p in last["content"] if p["type"] == "image_url"]
        secret = "42" if "The secret is 42." in said(last) else "unknown"
        return {"text": f"I see {len(shown)} picture, and the secret is {secret}."}

    product.model.brain = brain
    product.execute("UPDATE tools_admin_languagemodel SET vision = true")
    yield product.person()
    product.execute("UPDATE tools_admin_languagemodel SET vision = false")
    product.model.brain = think


def choose(page: Page, *files: FilePayload) -> Locator:
    """The chips of the composer, once these are on the server or refused."""
    expect(page.locator(".composer[data-ready]")).to_be_visible()
    page.locator("[data-file-input]").set_input_files(list(files))
    chips = page.locator(".composer .chip")
    expect(page.locator('.composer .chip[data-state="sending"]')).to_have_count(0)
    return chips


def look(page: Page, name: str) -> None:
    """Keeps a picture of the page where a developer asks for it."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


@pytest.mark.parametrize("options", [{"viewport": WIDE}, {"viewport": PHONE, "color_scheme": "dark", "locale": "de"}])
def test_what_is_added_reaches_the_model_and_stands_on_the_message(
    visit: OpenPage, person: Person, options: dict[str, Any]
) -> None:
    page = visit(person, **options)
    chips = choose(page, PHOTO, NOTES, {**NOTES, "name": LONG_NAME})
    expect(chips).to_have_count(3)
    expect(chips.first.locator("img")).to_be_visible()
    expect(chips.nth(1)).to_contain_text("17 B")
    page.locator(".composer textarea").fill("What is in there?")
    look(page, f"composer-{options['viewport']['width']}")
    page.keyboard.press("Enter")
    answers(page)
    expect(page.locator(".answer")).to_have_text("I see 1 picture, and the secret is 42.")
    expect(chips).to_have_count(0)
    question = page.locator(".question")
    expect(question.get_by_role("img", name="photo.png")).to_be_visible()
    look(page, f"sent-{options['viewport']['width']}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.reload()
    expect(question.locator(".question-files li")).to_have_count(3)
    assert question.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 640
    with page.expect_download() as download:
        question.get_by_role("link", name="notes.txt").first.click()
    assert download.value.suggested_filename == "notes.txt"
    _exported_and_imported(page, options["viewport"]["width"])


def _exported_and_imported(page: Page, width: int) -> None:
    before = page.url
    page.locator("[data-conversation-menu][data-current]").click()
    look(page, f"export-{width}")
    with page.expect_download() as download:
        page.locator("[data-action=export]").click()
    assert download.value.suggested_filename.endswith(".zip")
    page.locator("[data-import-file]").set_input_files(download.value.path())
    page.wait_for_url(lambda url: url not in (before, ""))
    expect(page.locator(".question-files li")).to_have_count(3)
    expect(page.locator(".answer:not(.plain)")).to_have_text("I see 1 picture, and the secret is 42.")
    expect(page.locator(".answer-foot [data-regenerate]")).to_be_visible()
    expect(page.locator(".answer-foot [data-details]")).to_be_hidden()
    look(page, f"imported-{width}")


def test_files_can_be_dropped_pasted_and_removed_with_the_keyboard(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    expect(page.locator(".composer[data-ready]")).to_be_visible()
    page.evaluate(GIVE, ["drop", "dropped.txt"])
    page.evaluate(GIVE, ["paste", "pasted.txt"])
    chips = page.locator('.composer .chip[data-state="ready"]')
    expect(chips).to_have_count(2)
    expect(page.locator(".composer[data-dropping]")).to_have_count(0)
    expect(page.get_by_role("button", name="Send")).to_be_enabled()  # a file needs no words
    page.get_by_role("button", name="Remove dropped.txt").focus()
    page.keyboard.press("Enter")
    expect(chips).to_have_count(1)
    expect(page.get_by_role("button", name="Remove pasted.txt")).to_be_focused()
    expect(page.locator("#announcer")).to_have_text("Removed: dropped.txt")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Attach files")).to_be_focused()
    expect(page.get_by_role("button", name="Send")).to_be_disabled()


def test_a_draft_keeps_its_files_over_a_reload(visit: OpenPage, product: Product, person: Person) -> None:
    page = visit(person)
    chips = choose(page, NOTES, {**NOTES, "name": "gone.txt"})
    page.locator(".composer textarea").fill("Later")
    product.execute("DELETE FROM conversations_attachment WHERE user_id = %s AND filename = 'gone.txt'", person.id)
    page.reload()
    expect(chips).to_have_count(1)
    expect(chips).to_contain_text("notes.txt")
    expect(page.locator("#composer-hint")).to_contain_text("A file of this draft is gone")
    page.locator(".composer textarea").press("Enter")
    answers(page)
    expect(page.locator(".answer")).to_contain_text("the secret is 42")
    _edited_without_its_file(page)


def _edited_without_its_file(page: Page) -> None:
    question, remove = page.locator(".question").last, page.get_by_role("button", name="Remove notes.txt")
    question.get_by_role("button", name="Edit").click()
    remove.click()
    expect(question.locator(".question-files li:visible")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(question.locator(".question-files li:visible")).to_have_count(1)  # it was not meant
    question.get_by_role("button", name="Edit").click()
    look(page, "edit-files")
    remove.focus()
    page.keyboard.press("Enter")
    expect(question.locator(".question-edit textarea")).to_be_focused()
    question.locator(".question-edit textarea").fill("Now")
    page.keyboard.press("Enter")
    expect(page.get_by_text("the secret is unknown")).to_be_visible()
    expect(page.locator(".question-files li")).to_have_count(0)


def test_what_cannot_be_used_says_why_and_holds_nothing_up(visit: OpenPage, product: Product, person: Person) -> None:
    product.execute("UPDATE tools_admin_languagemodel SET vision = false")
    page = visit(person, outage=True)  # the browser logs each refusal
    svg: FilePayload = {"name": "drawing.svg", "mimeType": "image/svg+xml", "buffer": b"<svg onload='alert(1)'/>"}
    locked: FilePayload = {"name": "locked.pdf", "mimeType": "application/pdf", "buffer": locked_pdf("x", password="y")}
    chips = choose(page, svg, {**NOTES, "name": "empty.txt", "buffer": b""}, locked, PHOTO)
    expect(chips.nth(0)).to_contain_text("Files of this kind cannot be read")
    expect(chips.nth(1)).to_contain_text("The file is empty")
    expect(page.locator('.composer .chip[data-state="unread"]')).to_contain_text("protected by a password")
    look(page, "refused")
    page.locator(".composer textarea").fill("What now?")
    page.keyboard.press("Enter")
    answers(page)
    expect(chips).to_have_count(2)  # what was not sent stays, until it is removed
    problems = page.locator(".file-problems")
    expect(problems).to_contain_text("locked.pdf: The PDF is protected by a password.")
    expect(problems).to_contain_text("cannot see pictures")
    look(page, "problems")
