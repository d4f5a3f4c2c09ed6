"""Pictures of the running product for the README and for looking at: wide and narrow, light and dark.

The model is a local fake that follows a script; tools and data are the real ones. Needs Chromium.
Usage: python -m benchmarks.screenshots [FOLDER]; the README's pictures are copies in docs/screenshots.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from agentapp.embedded.testing import services
from tests.fake_model import FakeModel, Reply
from tests.product import ROOT, Product

QUESTION = "Which products brought in the most last year, and do our notes say anything about them?"
REVENUE = (
    "SELECT product, SUM(quantity) AS sold, ROUND(SUM(amount)) AS revenue FROM sales "
    "WHERE ordered_on LIKE '2025%' GROUP BY product ORDER BY revenue DESC LIMIT 4"
)
NOTES = "SELECT title, text FROM notes WHERE text LIKE '%Tent%' OR text LIKE '%Sleeping Bag%' OR text LIKE '%Boots%'"
OTHERS = ["What time is it in Tokyo?", "What is 17.5 % of 1,240?", "When is the summer party, and what may it cost?"]

WIDE, PHONE = ViewportSize(width=1280, height=860), ViewportSize(width=390, height=844)
LOOKS: list[tuple[str, ViewportSize, Literal["light", "dark"]]] = [
    ("", WIDE, "light"),
    ("-dark", WIDE, "dark"),
    ("-phone", PHONE, "light"),
    ("-phone-dark", PHONE, "dark"),
]


def script(request: dict[str, Any]) -> Reply:
    """Two queries, a calculation, then the answer made of what the first query found."""
    messages = request["messages"]
    question = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
    if QUESTION not in str(messages):
        return {"text": f"This is a scripted answer to “{str(question)[:80]}”."}
    results = [m["content"] for m in messages if m["role"] == "tool"]
    if not results:
        return {"calls": [_call("query_demo_database", sql=REVENUE), _call("query_demo_database", sql=NOTES)]}
    rows = [line.split(" | ") for line in results[0].splitlines()[1:]]
    if len(results) == 2:
        total = " + ".join(row[2] for row in rows)
        return {"calls": [_call("calculator", expression=f"round(100 * {rows[0][2]} / ({total}))")]}
    share = results[2].rpartition("=")[2].strip()
    table = "\n".join(f"| {name} | {sold} | {float(revenue):,.0f} € |" for name, sold, revenue in rows)
    return {
        "text": f"**{rows[0][0]}** brought in the most in 2025: {share} % of what the four best made together.\n\n"
        f"| Product | Sold | Revenue |\n|---|---:|---:|\n{table}\n\n"
        "The notes mention three things worth knowing:\n\n"
        "- **Granite Boots**: batch `G-77` has weak laces; they are replaced free of charge.\n"
        "- **Feather Sleeping Bag**: 200 more were to be ordered before the first snow.\n"
        "- The **Ridge Tent** is on the cover of the spring catalogue."
    }


def _call(name: str, **arguments: str) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as logs, services() as environment:
        product = Product(environment, Path(logs), FakeModel(script).start())
        product.environment["OPENAI_MODEL"] = "scripted-model"
        try:
            product.start()
            product.model.brain = script
            with sync_playwright() as playwright:
                path = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
                browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
                take_all(product, browser, folder)
                browser.close()
        finally:
            product.stop()
            product.model.end()


def take_all(product: Product, browser: Browser, folder: Path) -> None:
    """Each page in each look; the names of the conversation's pictures are those that the README shows."""
    person = product.person()
    product.sql("UPDATE accounts_user SET first_name = 'Ada', last_name = 'Lind' WHERE id = %s RETURNING id", person.id)
    address = ""
    for look, size, scheme in LOOKS:
        context = browser.new_context(viewport=size, color_scheme=scheme, base_url=product.url, device_scale_factor=2)
        page = context.new_page()
        _take(page, "/account/login/", folder / f"sign-in{look}.png")
        context.add_cookies([{"name": "sessionid", "value": person.session, "url": product.url}])
        _take(page, "/", folder / f"empty{look}.png")
        address = address or _ask_everything(page)
        page.goto(address)
        page.locator(".work > summary").click()
        page.locator(".thread-scroll").evaluate("e => e.scrollTo(0, 0)")
        page.mouse.move(0, 0)
        page.screenshot(path=folder / f"chat{look}.png")
        page.get_by_role("link", name="Every call of this run").click()
        page.screenshot(path=folder / f"run{look}.png")
        _take(page, "/runs/", folder / f"runs{look}.png")
        context.close()


def _take(page: Page, address: str, path: Path) -> None:
    page.goto(address)
    page.screenshot(path=path)


def _ask_everything(page: Page) -> str:
    """Fills the list with conversations; gives the address of the one that is shown."""
    for question in [*OTHERS, QUESTION]:
        page.goto("/")
        page.get_by_label("Your message").last.fill(question)
        page.keyboard.press("Enter")
        expect(page.locator(".answer-foot:visible")).to_have_count(1, timeout=30_000)
    return page.url


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "var" / "screenshots")
