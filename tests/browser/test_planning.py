"""A question worked on by a plan: the way is picked, the plan is seen, and it is all still there after a reload."""

import os
import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, WIDE, OpenPage, answers, ask
from tests.conversations.planning_brain import goals, planning, sums
from tests.fake_model import think
from tests.product import Person, Product

SHOTS = os.environ.get("SHOTS", "")
TWELVE = sums(*(f"{n} * 300" for n in range(1, 12)), "1 + 1", joined=True)
for planned in TWELVE[4:8]:
    planned["depends_on"] = ["E1", "E2"]


@pytest.fixture(autouse=True)
def usual_model(product: Product):
    yield
    product.model.brain = think


def pick(page: Page, mode: str) -> None:
    page.get_by_role("button", name="Way of working").click()
    page.get_by_role("radio", name=mode).click()
    expect(page.locator("#mode-menu")).to_be_hidden()


def open_work(page: Page) -> None:
    if page.locator(".work[open]").count() == 0:
        page.locator(".work > summary").click()


def test_a_way_is_picked_with_the_keyboard_and_holds_for_the_question(
    visit: OpenPage, product: Product, ada: Person
) -> None:
    product.model.brain = planning(sums("2 * 300"), answer="It is 600.")
    page = visit(ada)
    button = page.get_by_role("button", name="Way of working")
    expect(button).to_contain_text("Step by step")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("radio", name="Step by step")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#mode-menu")).to_be_hidden()
    expect(button).to_contain_text("Plan all calls")
    ask(page, "Work it out")
    answers(page)
    expect(page.locator(".answer-foot .facts")).to_contain_text("Plan all calls")
    page.reload()
    expect(page.locator(".answer-foot .facts")).to_contain_text("Plan all calls")


@pytest.mark.parametrize("viewport", [WIDE, PHONE])
def test_a_plan_of_twelve_steps_can_be_read(visit: OpenPage, product: Product, ada: Person, viewport) -> None:
    product.model.brain = planning(TWELVE, answer="All twelve are there.")
    page = visit(ada, viewport=viewport)
    pick(page, "Plan all calls")
    ask(page, "Twelve things")
    answers(page)
    open_work(page)
    nodes = page.locator(".plan-steps > li")
    expect(nodes).to_have_count(12)
    expect(page.locator(".plan-count")).to_have_text("12 of 12 done")
    last = nodes.nth(11)
    expect(last).to_have_attribute("data-state", "done")
    edges = page.locator(".plan-edges path")
    if viewport == WIDE:
        expect(edges.first).to_be_visible()
        assert edges.count() == 11 + 8
        first = nodes.first.bounding_box()
        assert first and last.bounding_box()["x"] > first["x"]
    else:
        expect(page.locator(".plan-edges")).to_be_hidden()
        expect(nodes.nth(4)).to_contain_text("after E1, E2")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    last.get_by_role("button").click()
    expect(page.locator(".plan-detail")).to_contain_text("1 + 1 = 2")
    expect(page.locator(".plan-detail .step")).to_contain_text("calculator")
    live = page.locator(".plan").inner_text()
    page.reload()
    open_work(page)
    nodes.nth(11).get_by_role("button").click()
    expect(page.locator(".plan")).to_have_text(re.compile("12 of 12 done"))
    assert page.locator(".plan").inner_text() == live


def test_the_way_that_was_chosen_and_why_stands_with_the_answer(visit: OpenPage, product: Product, ada: Person) -> None:
    product.model.brain = planning(sums("2 * 300"), mode="rewoo", answer="It is 600.")
    page = visit(ada)
    pick(page, "Automatic")
    ask(page, "Some question")
    answers(page)
    open_work(page)
    expect(page.locator(".route")).to_have_text("Way of working: Plan all calls – several lookups are known")
    expect(page.locator(".answer-foot .facts")).to_contain_text("Plan all calls")


def test_earlier_rounds_and_the_reason_for_a_new_plan_are_kept(visit: OpenPage, product: Product, ada: Person) -> None:
    asked = []

    def brain(request):
        forced = request.get("tool_choice")
        name = forced["function"]["name"] if isinstance(forced, dict) else ""
        if name == "plan":
            asked.append(1)
            made = (
                goals(("Work out 7 * 300", []))
                if len(asked) == 1
                else [{"id": "t1", "task": "Work out 8 * 300", "depends_on": []}]
            )
            return {"calls": [{"name": "plan", "arguments": {"steps": made}}]}
        if name == "judge":
            data = {"achieved": len(asked) > 1, "confidence": 0.5, "reasoning": "The second figure is missing."}
            return {"calls": [{"name": "judge", "arguments": data}]}
        return planning([], answer="Both are there.")(request)

    product.model.brain = brain
    page = visit(ada)
    pick(page, "Side by side")
    ask(page, "Two figures")
    answers(page)
    open_work(page)
    rounds = page.locator(".plan-round")
    expect(rounds).to_have_count(2)
    expect(rounds.nth(1)).to_contain_text("Made anew: The second figure is missing.")
    assert rounds.nth(0).get_attribute("open") is None
    rounds.nth(0).locator("summary").first.click()
    expect(rounds.nth(0)).to_contain_text("Judged: the goal is not reached yet (50% sure).")
    rounds.nth(0).get_by_role("button").first.click()
    expect(rounds.nth(0).locator(".plan-detail .step")).to_contain_text("calculator")


def test_a_draft_is_signed_beside_its_verdict(visit: OpenPage, product: Product, ada: Person) -> None:
    def brain(request):
        forced = request.get("tool_choice")
        if isinstance(forced, dict):
            data = {"verdict": "fail", "reasons": ["The **second** figure is not in the evidence.", "No source."]}
            return {"calls": [{"name": "verdict", "arguments": data}]}
        return think(request)

    product.model.brain = brain
    product.execute("UPDATE tools_admin_agent SET sign_off = true WHERE is_default")
    try:
        page = visit(ada)
        ask(page, "Write something")
        card = page.get_by_role("region", name="Approval needed")
        expect(card).to_contain_text("a draft to sign")
        expect(card).to_contain_text("Hello! You wrote: Write something")
        expect(card.locator(".request-verdict")).to_contain_text("Checked, with objections:")
        expect(card.locator(".request-verdict li")).to_have_count(2)
        expect(page.locator(".answer:visible")).to_have_count(0)
        other = visit(ada, "/approvals/", viewport=PHONE)
        expect(other.locator(".request-verdict li")).to_have_count(2)
        assert other.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if SHOTS:
            page.screenshot(path=f"{SHOTS}/sign.png")
            other.screenshot(path=f"{SHOTS}/sign-phone.png")
        card.get_by_role("button", name="Approve once").click()
        answers(page)
        expect(page.locator(".answer")).to_contain_text("Hello! You wrote: Write something")

        ask(page, "Another thing")
        card.get_by_role("button", name="Reject").click()
        expect(page.get_by_text("The draft was rejected. Nothing was published.")).to_be_visible()
    finally:
        product.execute("UPDATE tools_admin_agent SET sign_off = false WHERE is_default")
