"""The form and the bounds of drafts, and that a signature needs a journal that lasts."""

import pytest

from agentapp.engine import (
    BadDraft,
    DraftRules,
    MemoryJournal,
    NotDurable,
    ScriptedChatModel,
    ToolCall,
    draft_of,
    draft_text,
    require_durable,
)

FORM = {
    "type": "object",
    "properties": {"amount": {"type": "number"}, "to": {"type": "string"}},
    "required": ["amount"],
}
RULES = DraftRules(FORM, {"amount": {"max": 100}}, {"to": ["sales"]})


@pytest.mark.parametrize(
    ("draft", "problem"),
    [
        ({"amount": 100, "to": "sales"}, None),
        ({"amount": 101, "to": "sales"}, "more than 100"),
        ({"amount": -1, "to": "sales"}, "less than 0"),
        ({"amount": float("nan"), "to": "sales"}, "finite"),
        ({"amount": float("inf"), "to": "sales"}, "finite"),
        ({"amount": True, "to": "sales"}, "not of type 'number'"),
        ({"amount": 5, "to": "everybody"}, "none of sales"),
        ({"to": "sales"}, "required"),
        ("text", "no object"),
    ],
)
def test_bounds_are_kept_by_code(draft, problem):  # P-57
    fault = RULES.fault(draft)
    assert fault is None if problem is None else problem in fault


def test_a_negative_figure_is_only_allowed_by_its_own_bound():
    assert DraftRules(FORM, {"amount": {"min": -5, "max": None}}).fault({"amount": -5}) is None


async def test_a_text_is_its_own_draft():
    assert await draft_of(ScriptedChatModel([]), "q", "All is well.", DraftRules()) == {"answer": "All is well."}


async def test_a_draft_is_read_out_of_the_answer_or_asked_for():  # P-55
    found = await draft_of(ScriptedChatModel([]), "q", 'Here: {"amount": 5}', RULES)
    asked = await draft_of(ScriptedChatModel([ToolCall("d", "draft", {"amount": 6})]), "q", "Six.", RULES)
    assert (found, asked) == ({"amount": 5}, {"amount": 6})
    assert draft_text(found, RULES) == "- **amount:** 5"


async def test_an_answer_that_fits_no_form_is_a_fault():
    with pytest.raises(BadDraft, match="has not the form"):
        await draft_of(ScriptedChatModel(["no"] * 9), "q", "Some text.", RULES)


def test_a_signature_needs_a_durable_journal():  # P-53
    with pytest.raises(NotDurable):
        require_durable(MemoryJournal())
