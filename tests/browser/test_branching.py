"""Messages in other words, answers anew, branches, and the way between versions."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, OpenPage, answers, ask
from tests.product import Person, Product, eventually


@pytest.fixture
def person(product: Product) -> Person:
    return product.person()


def texts(page: Page) -> list[str]:
    return [text.strip() for text in page.locator(".bubble, .answer:visible").all_inner_texts()]


def two_turns(page: Page) -> None:
    ask(page, "First")
    answers(page)
    ask(page, "Second")
    answers(page, 2)


def edit(page: Page, question: str, words: str) -> None:
    entry = page.locator(".question", has_text=question)
    entry.hover()
    entry.get_by_role("button", name="Edit").click()
    entry.get_by_role("textbox").fill(words)
    page.keyboard.press("Enter")


def test_a_message_is_edited_and_both_versions_stay(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    other = visit(person)
    two_turns(page)
    other.goto(page.url)
    edit(page, "Second", "Third")
    for tab in (page, other):
        expect(tab.locator(".answer").last).to_have_text("Hello! You wrote: Third")
        expect(tab.locator(".question").last.locator(".position")).to_have_text("2/2")
    assert texts(page) == texts(other) == ["First", "Hello! You wrote: First", "Third", "Hello! You wrote: Third"]

    page.locator(".question").last.get_by_role("button", name="Previous version").click()
    for tab in (page, other):
        expect(tab.locator(".answer").last).to_have_text("Hello! You wrote: Second")
        expect(tab.locator(".question").last.locator(".position")).to_have_text("1/2")
    expect(page.get_by_role("button", name="Next version")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".answer").last).to_have_text("Hello! You wrote: Third")
    page.reload()
    assert texts(page)[-1] == "Hello! You wrote: Third"


def test_escape_leaves_the_message_as_it_was(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    ask(page, "First")
    answers(page)
    page.get_by_role("button", name="Edit").focus()
    page.keyboard.press("Enter")
    page.keyboard.type(" and more")
    page.keyboard.press("Escape")
    expect(page.locator(".bubble")).to_have_text("First")
    expect(page.get_by_role("button", name="Edit")).to_be_focused()


def test_an_answer_is_made_anew(visit: OpenPage, product: Product, person: Person) -> None:
    page = visit(person)
    ask(page, "First")
    answers(page)
    product.model.brain = lambda _: {"text": "Something else."}
    page.get_by_role("button", name="Answer again").click()
    expect(page.locator(".answer").last).to_have_text("Something else.")
    expect(page.locator(".position:visible").last).to_have_text("2/2")
    page.get_by_role("button", name="Previous version").click()
    expect(page.locator(".answer")).to_have_text("Hello! You wrote: First")


def test_a_branch_continues_from_an_earlier_answer(visit: OpenPage, product: Product, person: Person) -> None:
    page = visit(person)
    two_turns(page)
    expect(page.get_by_role("button", name="Continue from here")).to_have_count(1)
    page.get_by_role("button", name="Continue from here").click()
    expect(page.get_by_text("Continues from")).to_contain_text("Hello! You wrote: First")
    expect(page.get_by_label("Your message").last).to_be_focused()
    before = len(product.model.requests)
    ask(page, "Another second")
    expect(page.locator(".answer").last).to_have_text("Hello! You wrote: Another second")
    expect(page.locator(".bubble")).to_have_text(["First", "Another second"])
    assert texts(page)[:3] == ["First", "Hello! You wrote: First", "Another second"]
    expect(page.get_by_text("Continues from")).to_be_hidden()
    assert "Second" not in str(product.model.requests[before]["messages"]), "the agent is told this branch alone"
    ask(page, "And on")
    expect(page.locator(".bubble")).to_have_count(3)
    answers(page, 3)
    assert texts(page)[-2:] == ["And on", "Hello! You wrote: And on"]


def test_while_it_works_the_page_offers_to_stop_and_resend(visit: OpenPage, product: Product, person: Person) -> None:
    product.model.token_delay = 0.02
    page = visit(person)
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    edit(page, "Tell me a story", "Say hello")
    expect(page.get_by_text("The agent is still working")).to_be_visible()
    page.get_by_role("button", name="Let it work").click()
    expect(page.locator(".question-edit textarea")).to_have_value("Say hello")
    page.locator(".question-edit textarea").press("Enter")
    page.get_by_role("button", name="Stop and resend").click()
    expect(page.locator(".answer").last).to_have_text("Hello! You wrote: Say hello")
    assert texts(page) == ["Say hello", "Hello! You wrote: Say hello"]
    page.get_by_role("button", name="Previous version").click()
    expect(page.get_by_text("Stopped. This is what there was until then.")).to_be_visible()


def test_a_retried_run_takes_the_place_of_what_was_stopped(visit: OpenPage, product: Product, person: Person) -> None:
    product.model.token_delay = 0.02
    page = visit(person)
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    page.get_by_role("button", name="Stop").click()
    again = page.get_by_role("button", name="Try again")
    expect(again).to_be_visible()
    product.model.token_delay = 0.0
    again.click()
    expect(page.locator(".position:visible").last).to_have_text("2/2")
    expect(page.locator(".answer")).to_have_count(1)
    expect(page.locator(".answer")).to_contain_text("word399")


def test_answers_are_judged(visit: OpenPage, product: Product, person: Person) -> None:
    page = visit(person)
    ask(page, "First")
    answers(page)
    good, bad = (page.get_by_role("button", name=f"{kind} answer") for kind in ("Good", "Bad"))
    rows = (
        "SELECT feedback FROM conversations_message m JOIN conversations_conversation c ON c.id = conversation_id "
        "WHERE c.user_id = %s AND role = 'assistant'"
    )
    good.click()
    bad.click()
    eventually(lambda: product.sql(rows, person.id) == [("bad",)], "the last one counts")
    page.reload()
    expect(bad).to_have_attribute("aria-pressed", "true")
    expect(good).to_have_attribute("aria-pressed", "false")
    bad.click()
    expect(bad).to_have_attribute("aria-pressed", "false")
    eventually(lambda: product.sql(rows, person.id) == [("",)], "the judgement is gone")


def test_on_a_phone_versions_are_within_reach(visit: OpenPage, person: Person) -> None:
    page = visit(person, viewport=PHONE, has_touch=True)
    ask(page, "First")
    answers(page)
    edit(page, "First", "A rather long message " * 12)
    answers(page)
    expect(page.locator(".position:visible").last).to_have_text("2/2")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Previous version").tap()
    expect(page.locator(".bubble")).to_have_text("First")


def test_what_a_stop_left_unread_waits_for_the_next_page(visit: OpenPage, product: Product, person: Person) -> None:
    product.model.token_delay = 0.02
    page = visit(person)
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    ask(page, "A remark")
    expect(page.locator(".question", has_text="A remark")).to_contain_text("Added while it was working")
    address = page.url
    page.context.close()
    ((run,),) = product.sql("SELECT id FROM conversations_run WHERE user_id = %s", person.id)
    from tests.conversations.test_main_job import call

    call(product, person, "POST", f"/api/v1/runs/{run}/cancel")
    eventually(
        lambda: product.sql("SELECT 1 FROM conversations_run WHERE id = %s AND status = 'cancelled'", run), "it stopped"
    )
    tabs = [visit(person, address), visit(person, address)]
    values = []
    for tab in tabs:
        expect(tab.locator(".composer[data-ready]")).to_be_visible()
    expect(tabs[0].locator(".bubble")).to_have_text("Tell me a story")

    def given() -> list[str]:
        nonlocal values
        values = sorted(tab.get_by_label("Your message").last.input_value() for tab in tabs)
        return values if any(values) else []

    eventually(given, "one page has the message")
    assert values == ["", "A remark"]
    taker = next(tab for tab in tabs if tab.get_by_label("Your message").last.input_value())
    taker.reload()
    expect(taker.get_by_label("Your message").last).to_have_value("A remark")
