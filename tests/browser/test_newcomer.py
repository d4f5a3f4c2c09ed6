"""From an empty installation to a first answer: at most six clicks and one key."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import WIDE, answers, ask
from tests.fake_model import FakeModel
from tests.installation import Installation

KEY = "sk-the-only-key"
COUNT_CLICKS = """
addEventListener("click", (event) => {
  if (event.detail) sessionStorage.setItem("clicks", Number(sessionStorage.getItem("clicks") ?? 0) + 1);
}, { capture: true });
"""


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Installation]:
    """An installation without a person, a key or a model."""
    model = FakeModel().start()
    installation = Installation(tmp_path, model)
    try:
        installation.environment |= {"OPENAI_BASE_URL": "", "OPENAI_API_KEY": "", "OPENAI_MODEL": ""}
        installation.manage("migrate", "--verbosity", "0")
        installation.restore()
        yield installation
    finally:
        installation.close()
        model.end()


def test_a_newcomer_connects_a_model_and_gets_an_answer(chromium: Browser, empty: Installation) -> None:
    link = empty.manage("shell", "--no-imports", "-c", "from accounts.services import setup_link; print(setup_link())")
    context = chromium.new_context(viewport=WIDE, base_url=empty.url)
    context.add_init_script(COUNT_CLICKS)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))

    page.goto(link.strip())
    page.get_by_label("Username").fill("grace")
    page.get_by_label("Password", exact=True).fill("correct-horse-battery")
    page.get_by_label("Password confirmation").fill("correct-horse-battery")
    page.get_by_role("button", name="Create account and start").click()

    page.get_by_role("link", name="Connect a model").click()
    page.get_by_label("Base URL").fill(empty.model.url)
    page.get_by_label("Key", exact=True).fill(KEY)
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_text("It offers 1 model.")).to_be_visible()
    expect(page.get_by_label("fake-model")).to_be_checked()
    page.get_by_role("button", name="Add and check").click()

    page.get_by_role("link", name="Ask a question").click()
    ask(page, "Good morning")
    answers(page)
    expect(page.locator(".answer")).to_contain_text("Hello! You wrote: Good morning")

    clicks = int(page.evaluate('sessionStorage.getItem("clicks")'))
    assert clicks <= 6, f"it took {clicks} clicks"
    assert errors == []
    assert KEY not in page.content()
    [(name, is_default, streaming)] = empty.sql("SELECT name, is_default, streaming FROM tools_admin_languagemodel")
    assert (name, is_default, streaming) == ("fake-model", True, True)
    assert KEY not in empty.log("worker") + empty.log("web")
    context.close()
