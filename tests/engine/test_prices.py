"""What a call costs, and a limit that the journal's keeper knows."""

import pytest

from agentapp.engine import LimitReached, MemoryJournal, Prices, ReActAgent, ScriptedChatModel, ToolCall, Usage


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(), 0),
        (Usage(1_000_000, 1_000_000), 3_000_000 + 15_000_000),
        (Usage(1_000_000, 0, cached_tokens=400_000), 1_800_000 + 120_000),
        (Usage(0, 1_000_000, reasoning_tokens=1_000_000), 20_000_000),
        (Usage(1, 0), 3),
        (Usage(0, 0, cached_tokens=9, reasoning_tokens=9), 0),  # parts of nothing
    ],
)
def test_each_kind_of_token_has_its_price(usage: Usage, cost: int) -> None:
    assert Prices(3_000_000, 300_000, 15_000_000, 20_000_000).cost_of(usage) == cost


def test_a_part_of_a_micro_unit_counts_as_one() -> None:
    assert Prices(1).cost_of(Usage(1)) == 1


class Purse(MemoryJournal):
    """Lets `calls` model calls begin, and after them `shares` last ones."""

    def __init__(self, calls, shares, records=None):
        super().__init__(records)
        self.calls, self.shares = calls, shares

    async def call(self, key, kind, request, effect, **options):
        if kind == "llm" and key not in self.records:
            left = "shares" if request["last"] else "calls"
            if not getattr(self, left):
                raise LimitReached("budget")
            setattr(self, left, getattr(self, left) - 1)
        return await super().call(key, kind, request, effect, **options)


async def _run(journal, counting, replies):
    model = ScriptedChatModel(replies)
    return await ReActAgent(model, [counting().tool], journal=journal).run("q"), model


async def test_a_used_up_budget_leaves_one_last_answer_without_tools(counting):
    journal = Purse(1, 1)
    result, model = await _run(journal, counting, [ToolCall("1", "echo", {}), "What I have."])
    assert (result.answer, result.stop_reason) == ("What I have.", "limit:budget")
    assert not model.requests[-1]["tools"]
    again, model = await _run(Purse(0, 0, journal.records), counting, [])
    assert (again.answer, again.stop_reason, len(model.requests)) == (result.answer, "limit:budget", 0)


@pytest.mark.parametrize("calls", [0, 1])
async def test_without_a_share_for_it_the_run_says_what_was_done(counting, calls):
    journal = Purse(calls, 0)
    result, _ = await _run(journal, counting, [ToolCall("1", "echo", {})])
    assert result.stop_reason == "limit:budget"
    assert ("echo: succeeded" if calls else "No tool was used") in result.answer
    again, model = await _run(Purse(9, 9, journal.records), counting, [])
    assert (again.answer, len(model.requests)) == (result.answer, 0)
