"""Runs that wait for a person: the request in the page, its decision, and where else it is seen."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PHONE, OpenPage, answers, ask
from tests.product import Person, Product, eventually

QUESTION = "What is 12 * 12?"


@pytest.fixture
def person(product: Product) -> Iterator[Person]:
    """Somebody whose calculator needs approval, and an expression that is not empty."""
    product.execute(
        "UPDATE tools_admin_tool SET approval = 'always', "
        "parameters = jsonb_set(parameters, '{properties,expression,minLength}', '1') WHERE name = 'calculator'"
    )
    yield product.person()
    product.execute(
        "UPDATE tools_admin_tool SET approval = 'never', "
        "parameters = parameters #- '{properties,expression,minLength}' WHERE name = 'calculator'"
    )


def asked(page: Page, question: str = QUESTION) -> Locator:
    """The request that the question leads to."""
    ask(page, question)
    card = page.locator(".request")
    expect(card).to_be_visible()
    expect(page.locator(".answer-block").last).to_have_attribute("data-status", "waiting")
    return card


def press(page: Page | Locator, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_where_a_group_decides_its_owner_sees_what_waits_and_no_buttons(
    visit: OpenPage, product: Product, person: Person
) -> None:
    product.execute("INSERT INTO auth_group (name) VALUES ('Finance')")
    ((finance,),) = product.sql("SELECT id FROM auth_group WHERE name = 'Finance'")
    product.execute("UPDATE tools_admin_tool SET approvers_id = %s WHERE name = 'calculator'", finance)
    try:
        page = visit(person)
        card = asked(page)
        for _ in ("live", "in the list"):
            expect(card).to_contain_text("Finance decides · Open until")
            expect(card.get_by_role("button")).to_have_count(0)
            page.goto(product.url + "/approvals/")
            card = page.locator(".request")
    finally:
        product.execute("UPDATE tools_admin_tool SET approvers_id = NULL WHERE name = 'calculator'")
        product.execute("DELETE FROM auth_group WHERE name = 'Finance'")


def test_an_approved_call_runs(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    card = asked(page)
    expect(card.get_by_role("heading")).to_have_text("Approval needed: Calculator")
    expect(card).to_contain_text("12 * 12")
    expect(card).to_contain_text("Open until")
    expect(page.locator(".work > summary")).to_contain_text("Waiting for your approval")
    expect(page.locator(".spinning:visible")).to_have_count(0)
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("The work waits for you.")
    press(card, "Approve once")
    answers(page)
    expect(page.locator(".answer")).to_contain_text("144")
    expect(card).to_have_count(0)
    page.locator(".work > summary").click()
    expect(page.get_by_text("Approved: Calculator")).to_be_visible()


def test_a_rejection_takes_a_comment_and_turns_the_card_into_a_line(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    card = asked(page)
    card.get_by_label("Comment").fill("Not before Monday")
    press(card, "Reject")
    answers(page)
    for _ in ("live", "reloaded"):
        page.locator(".work > summary").click()
        expect(page.get_by_text("Rejected: Calculator – “Not before Monday”")).to_be_visible()
        expect(page.locator(".request")).to_have_count(0)
        page.reload()


def test_arguments_are_edited_and_what_does_not_fit_is_said_in_place(visit: OpenPage, person: Person) -> None:
    page = visit(person, outage=True)  # a refusal is logged as a failed load
    card = asked(page)
    press(card, "Edit")
    field = card.get_by_label("expression")
    expect(field).to_have_value("12 * 12")
    expect(field).to_be_focused()
    field.fill("")
    card.get_by_label("Comment").fill("rounder")
    press(card, "Approve once, as changed")
    expect(card.get_by_role("alert")).to_contain_text("do not fit the tool")
    expect(field).to_have_value("")
    expect(card.get_by_label("Comment")).to_have_value("rounder")
    field.fill("10 * 10")
    press(card, "Approve once, as changed")
    answers(page)
    page.locator(".work > summary").click()
    page.locator(".step summary").click()
    expect(page.locator(".step-detail")).to_contain_text("10 * 10 = 100")


def test_values_keep_their_kind_in_the_form(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    args = {"text": "12", "count": 3, "urgent": True, "to": [{"name": "Ada"}], "nothing": None}
    read = page.evaluate(
        """async (args) => {
            const { ArgumentForm } = await import("#chat/argument-form.js");
            const element = document.createElement("form");
            document.body.append(element);
            const form = new ArgumentForm(element, args);
            const same = form.read();
            const area = [...element.querySelectorAll("textarea")].find((a) => a.value.includes("Ada"));
            area.value = "[{name: Ada}]";
            const broken = form.read();
            const problem = element.querySelector(".field-error:not([hidden])").textContent;
            return { same, broken, problem };
        }""",
        args,
    )
    assert read["same"] == args
    assert read["broken"] is None
    assert "not valid JSON" in read["problem"]


def test_long_arguments_are_shown_whole_before_anybody_decides(
    visit: OpenPage, product: Product, person: Person
) -> None:
    long = " + ".join("1" * 9 for _ in range(8_000))  # more than fits into an event
    product.model.brain = lambda request: (
        {"calls": [{"name": "calculator", "arguments": {"expression": long}}]}
        if request.get("tools") and request["messages"][-1]["role"] != "tool"
        else {"text": "Done."}
    )
    page = visit(person)
    card = asked(page)
    expect(card.locator("dd")).to_have_text(long)
    expect(card.get_by_role("button", name="Approve once")).to_be_enabled()
    press(card, "Edit")
    expect(card.get_by_label("expression")).to_have_value(long)
    press(card, "Discard changes")
    press(card, "Reject")
    answers(page)


def test_it_waits_over_a_reload_on_the_phone_and_in_another_tab(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    asked(page)
    page.reload()
    expect(page.locator(".request")).to_contain_text("12 * 12")
    tab, phone = visit(person, page.url), visit(person, page.url, viewport=PHONE)
    for other in (tab, phone):
        expect(other.locator(".request")).to_be_visible()
    tab.locator(".request").get_by_label("Comment").fill("half a thought")
    press(phone.locator(".request"), "Approve once")
    for other in (page, tab, phone):
        answers(other)
        expect(other.locator(".answer")).to_contain_text("144")
        expect(other.locator(".request")).to_have_count(0)


def test_the_list_of_what_waits(visit: OpenPage, person: Person, product: Product) -> None:
    page = visit(person)
    asked(page)
    link = page.get_by_role("link", name="Waiting for you 1")
    expect(link).to_be_visible()
    link.click()
    expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()
    plain = visit(person, "/approvals/", java_script_enabled=False)
    expect(plain.locator(".request")).to_contain_text("12 * 12")
    expect(plain.get_by_role("link", name=QUESTION)).to_have_count(2)
    stranger = visit(product.person(), "/approvals/")
    expect(stranger.get_by_role("heading", name="Nothing waits for you")).to_be_visible()

    press(page.locator(".request"), "Reject")
    expect(page.locator(".request-settled")).to_have_text("Rejected: Calculator")
    expect(page.get_by_role("link", name=re.compile("Waiting for you"))).to_be_hidden()


def test_a_message_to_a_waiting_run_offers_to_withdraw_the_request(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    asked(page)
    ask(page, "Never mind, just say hello")
    expect(page.get_by_text("The agent reads it after your decision")).to_be_visible()
    press(page, "Withdraw the request and go on")
    answers(page)
    expect(page.locator(".request")).to_have_count(0)
    expect(page.get_by_text("Added while it was working")).to_be_visible()
    page.locator(".work > summary").first.click()
    expect(page.get_by_text("Withdrawn: Calculator")).to_be_visible()


def test_stop_ends_a_waiting_run(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    asked(page)
    press(page, "Stop")
    expect(page.get_by_text("Stopped before there was an answer.")).to_be_visible()
    expect(page.locator(".request")).to_have_count(0)
    expect(page.get_by_role("link", name=re.compile("Waiting for you"))).to_be_hidden()


def test_the_request_is_decided_by_keyboard(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    asked(page)
    for _ in range(12):
        if page.evaluate("document.activeElement.dataset.decide") == "approve":
            break
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    answers(page)
    expect(page.locator(".answer")).to_contain_text("144")


def test_a_message_sent_meanwhile_is_taken_back(visit: OpenPage, product: Product, person: Person) -> None:
    page = visit(person)
    other = visit(person)
    asked(page)
    other.goto(page.url)
    ask(page, "On second thoughts")
    for tab in (page, other):
        expect(tab.locator(".bubble", has_text="On second thoughts")).to_be_visible()
    press(page, "Take back")
    for tab in (page, other):
        expect(tab.locator(".bubble", has_text="On second thoughts")).to_have_count(0)
    expect(page.get_by_label("Your message").last).to_have_value("On second thoughts")
    assert product.sql("SELECT recalled FROM conversations_message WHERE content = 'On second thoughts'") == [(True,)]
    page.reload()
    expect(page.locator(".bubble")).to_have_text(QUESTION)


def test_a_message_that_was_read_cannot_be_taken_back(visit: OpenPage, product: Product, ada: Person) -> None:
    product.model.token_delay = 0.02
    page = visit(ada, outage=True)  # a refusal is logged as a failed load
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    ask(page, "Read in the meantime")
    expect(page.get_by_role("button", name="Take back")).to_be_visible()
    product.execute(
        "UPDATE conversations_interrupt SET state = 'admitted' FROM conversations_message m "
        "WHERE m.id = message_id AND m.content = 'Read in the meantime'"
    )
    press(page, "Take back")
    expect(page.get_by_text("it cannot be taken back")).to_be_visible()
    expect(page.locator(".bubble", has_text="Read in the meantime")).to_be_visible()
    press(page, "Stop")
    answers(page)


def test_after_a_stop_unread_messages_are_in_the_composer(visit: OpenPage, product: Product, ada: Person) -> None:
    product.model.token_delay = 0.02
    page = visit(ada)
    ask(page, "Tell me a story")
    expect(page.locator(".answer")).to_contain_text("word3")
    for text in ("First remark", "Second remark"):
        ask(page, text)
        expect(page.locator(".question", has_text=text)).to_contain_text("Added while it was working")
    press(page, "Stop")
    expect(page.get_by_label("Your message").last).to_have_value("First remark\n\nSecond remark")
    expect(page.locator(".bubble")).to_have_text("Tell me a story")


def test_a_message_nobody_read_begins_the_next_turn(visit: OpenPage, product: Product, person: Person) -> None:
    page = visit(person)
    asked(page)
    ask(page, "And then say hello")
    expect(page.get_by_text("The agent reads it after your decision")).to_be_visible()
    product.execute("UPDATE conversations_run SET deadline = now() WHERE user_id = %s", person.id)
    answers(page, 2)
    live = page.locator(".thread").inner_text()
    assert live.index("took longer than its deadline") < live.index("And then say hello") < live.index("Hello!")
    page.reload()
    expect(page.locator(".answer.plain:visible")).to_have_count(0)
    assert page.locator(".thread").inner_text() == live


def in_doubt(product: Product, page: Page) -> Locator:
    """A run whose worker died between the tool's effect and its record."""
    product.end("worker")
    worker = product.spawn("worker", product.commands["worker"], CRASH_AT="K7")
    ask(page, QUESTION)
    eventually(lambda: worker.poll() is not None, "the worker has died")
    product.restore()
    card = page.locator(".request")
    expect(card).to_be_visible(timeout=45_000)
    return card


@pytest.fixture
def once(product: Product) -> Iterator[None]:
    """The calculator must not be repeated."""
    product.execute("UPDATE tools_admin_tool SET effect_class = 'once', approval = 'never' WHERE name = 'calculator'")
    yield
    product.execute("UPDATE tools_admin_tool SET effect_class = 'pure' WHERE name = 'calculator'")


@pytest.mark.usefixtures("once")
def test_a_call_of_unknown_outcome_asks_what_became_of_it(visit: OpenPage, product: Product) -> None:
    person = product.person()
    page = visit(person)
    card = in_doubt(product, page)
    expect(card.get_by_role("heading")).to_have_text("Outcome unknown: Calculator")
    expect(card).to_contain_text("nobody saw how it ended")
    expect(page.locator(".work > summary")).to_contain_text("the outcome of a call is unknown")
    page.reload()
    listed = visit(person, "/approvals/")
    expect(listed.locator(".request")).to_contain_text("12 * 12")
    card.get_by_label("Result").fill("144, I looked")
    press(card, "It was done")
    answers(page)
    expect(card).to_have_count(0)
    page.locator(".work > summary").click()
    page.locator(".step summary").click()
    expect(page.locator(".step-detail")).to_contain_text("144, I looked")


@pytest.mark.usefixtures("once")
def test_a_call_of_unknown_outcome_is_done_now_from_the_list(visit: OpenPage, product: Product) -> None:
    person = product.person()
    page = visit(person)
    in_doubt(product, page)
    listed = visit(person, "/approvals/")
    press(listed.locator(".request"), "Do it now")
    expect(listed.locator(".request-settled")).to_have_text("Settled; the run goes on.")
    answers(page)
    expect(page.locator(".request")).to_have_count(0)
    expect(page.locator(".answer")).to_contain_text("144")


def fold(page: Page, events: list[dict[str, Any]]) -> dict[str, Any]:
    run = page.evaluate(
        """async (events) => {
            const { createRun, fold } = await import("#chat/run-state.js");
            const run = createRun("r");
            for (const event of events) fold(run, event);
            return JSON.stringify(run);
        }""",
        events,
    )
    state: dict[str, Any] = json.loads(run)
    return state


def event(seq: int, channel: str, **data: Any) -> dict[str, Any]:
    return {"run": "r", "seq": seq, "channel": channel, "data": data}


def approval(seq: int, number: str, status: str) -> dict[str, Any]:
    data = {"approval_id": number, "status": status, "tool_name": "t", "tool_args": {}, "expires_at": "2026-01-01"}
    return event(seq, "approval", **data)


def test_a_run_goes_on_only_when_everything_is_decided(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    story = [
        event(1, "run", status="running"),
        approval(2, "a", "pending"),
        approval(3, "b", "pending"),
        event(4, "run", status="waiting", reason="approval", request={}),
        approval(5, "a", "approved"),
    ]
    assert fold(page, story)["status"] == "waiting"
    assert fold(page, [*story, approval(6, "b", "rejected")])["status"] == "queued"


def test_an_interruption_leaves_a_line(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    running = [event(n, "run", status="running") for n in (1, 2)]
    assert [step["tool"] for step in fold(page, running)["steps"]] == ["resumed"]
    waited = [running[0], event(2, "run", status="waiting", reason="approval"), event(3, "run", status="running")]
    assert fold(page, waited)["steps"] == []


def test_requests_of_an_ended_run_are_withdrawn(visit: OpenPage, person: Person) -> None:
    page = visit(person)
    story = [approval(1, "a", "pending"), event(2, "done", status="cancelled", reason="user")]
    assert [a["status"] for a in fold(page, story)["approvals"]] == ["superseded"]
