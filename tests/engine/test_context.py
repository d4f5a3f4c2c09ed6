"""The context guard: what it keeps, what it may drop, and that calls are never parted from results."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentapp.engine import (
    BadModelRequest,
    ContextGuard,
    ContextOverflow,
    MemoryJournal,
    Message,
    ReActAgent,
    ScriptedChatModel,
    ToolCall,
    budget_for,
    estimate_tokens,
    micro_compact,
    repair_history,
    validate_pairing,
)

SYSTEM = Message.system("rules")


def turn(number, *sizes):
    calls = [ToolCall(f"c{number}_{slot}", "echo", {"n": slot}) for slot in range(len(sizes))]
    results = [Message.tool(call.id, "r" * size) for call, size in zip(calls, sizes, strict=True)]
    return [Message.assistant("", calls), *results]


def conversation(turns=6, size=400):
    question = Message.user("the question", pinned=True)
    return [SYSTEM, question, *(m for n in range(turns) for m in turn(n, size, size))]


@pytest.mark.parametrize(
    ("messages", "tokens"),
    [
        ([], 0),
        ([Message.user("")], 4),
        ([Message.user("a" * 400)], 104),
        ([Message.user("ä" * 300)], 204),
        ([Message.user("a")], 5),
        ([Message.user([{"type": "image_url", "image_url": {}}])], 769),
    ],
)
def test_tokens_are_estimated(messages, tokens):  # E-54
    assert estimate_tokens(messages) == tokens


def test_arguments_and_schemas_count():  # E-54
    assert estimate_tokens(turn(1, 0)[:1]) > 4
    assert estimate_tokens([], [{"type": "function", "function": {"name": "x"}}]) > 5


def test_the_budget_leaves_room_for_the_reply():
    assert budget_for(ScriptedChatModel([], context_size=100_000, max_output_tokens=30_000)) == 70_000
    assert budget_for(ScriptedChatModel([], context_size=4_000)) == 4_000


async def test_what_fits_stays_as_it_is():  # E-55
    messages = conversation(1)
    guard = ContextGuard(10_000)
    assert await guard.check_and_compact(messages) == messages
    assert guard.last_compaction is None


async def test_a_long_message_is_cut_with_a_marker_and_stays_pinned():  # E-55
    long = Message.user("x" * 60_000, pinned=True)
    kept = await ContextGuard(100_000).check_and_compact([SYSTEM, long])
    assert kept[1].text.endswith("[cut: 50,000 of 60,000 characters shown]")
    assert kept[1].pinned
    assert len(long.text) == 60_000


async def test_the_summary_stands_between_pinned_and_recent_messages():  # E-56
    messages = conversation()
    model = ScriptedChatModel(["<analysis>scratch</analysis>The card."])
    guard = ContextGuard(900, compact_model=model)
    kept = await guard.check_and_compact(messages, "react_iteration")
    assert [m.role for m in kept] == ["system", "user", "user", "assistant", "tool", "tool"]
    assert kept[2].text.endswith("\nThe card.")
    assert kept[-3:] == messages[-3:]
    prompt = " ".join(message.text for message in model.requests[0]["messages"])
    assert "the question" not in prompt
    assert "Next step" in prompt
    assert (guard.last_compaction.method, guard.last_compaction.original_messages) == ("summary", len(messages))


async def test_an_unknown_hint_is_general_and_an_own_prompt_wins():  # E-61
    for prompt, expected in ((None, "open questions"), ("MY PROMPT", "MY PROMPT")):
        model = ScriptedChatModel(["s"])
        await ContextGuard(900, compact_model=model, prompt=prompt).check_and_compact(conversation(), "odd")
        assert expected in model.requests[0]["messages"][0].text


@pytest.mark.parametrize("reply", [BadModelRequest("no"), "", "<think>only thoughts"])
async def test_a_failing_summary_becomes_truncation(reply):  # E-57, E-58
    guard = ContextGuard(900, compact_model=ScriptedChatModel([reply]))
    kept = await guard.check_and_compact(conversation())
    assert guard.last_compaction.method == "truncation"
    assert estimate_tokens(kept) <= 900
    assert kept[:2] == conversation()[:2]


async def test_pinned_beyond_half_of_the_budget_may_go_but_question_and_interrupt_stay():  # E-60
    pins = [Message.user(f"pin {n} " + "p" * 1_200, pinned=True) for n in range(5)]
    question = Message.user("the question", pinned=True)
    interrupt = Message.user("[USER INTERRUPT]: hurry", pinned=True)
    kept = await ContextGuard(1_000).check_and_compact([SYSTEM, *pins, question, interrupt, *turn(1, 400)])
    assert question in kept
    assert interrupt in kept
    assert estimate_tokens(kept) <= 1_000
    assert pins[0] not in kept


async def test_pinned_messages_that_alone_do_not_fit_are_shortened():  # E-55, E-58
    question = Message.user("q" * 40_000, pinned=True)
    kept = await ContextGuard(2_000).check_and_compact([SYSTEM, question])
    assert estimate_tokens(kept) <= 2_000
    assert kept[0] == SYSTEM
    assert kept[1].text.startswith("qqq")
    assert "[cut:" in kept[1].text


SIZES = st.lists(st.lists(st.integers(0, 3_000), min_size=1, max_size=3), min_size=1, max_size=8)


@given(SIZES, st.integers(150, 3_000), st.integers(0, 8), st.booleans())
async def test_no_compaction_parts_calls_from_results(sizes, budget, keep_recent, summarise):  # E-58, E-59, C-10
    messages = [SYSTEM, Message.user("the question", pinned=True)]
    for number, results in enumerate(sizes):
        messages += turn(number, *results)
    model = ScriptedChatModel(["short"]) if summarise else None
    kept = await ContextGuard(budget, compact_model=model, keep_recent=keep_recent).check_and_compact(messages)
    validate_pairing(kept)
    assert kept[:2] == messages[:2]
    assert estimate_tokens(kept) <= budget


TEXTS = st.sampled_from(["", "short", "ä" * 900, "x" * 4_000])
PIECES = st.lists(
    st.one_of(
        st.tuples(st.just("user"), TEXTS, st.booleans()),
        st.tuples(st.just("interrupt"), TEXTS, st.just(True)),
        st.tuples(st.just("turn"), st.lists(st.integers(0, 3_000), min_size=1, max_size=3), st.just(False)),
        st.tuples(st.just("assistant"), TEXTS, st.just(False)),
    ),
    max_size=12,
)


def built(pieces):
    messages = []
    for number, (kind, value, pinned) in enumerate(pieces):
        if kind == "turn":
            messages += turn(number, *value)
        elif kind == "assistant":
            messages.append(Message.assistant(value))
        else:
            marker = "[USER INTERRUPT]: " if kind == "interrupt" else ""
            messages.append(Message.user(f"{marker}{number} {value}", pinned=pinned))
    return messages


@given(PIECES, st.integers(60, 4_000), st.integers(0, 8), st.sampled_from([None, "short", "s" * 9_000, ""]))
async def test_any_conversation_fits_or_cannot_be_made_smaller(pieces, budget, keep_recent, summary):  # E-55, E-58
    question = Message.user("the question", pinned=True)
    messages = [SYSTEM, *built(pieces), question]
    before = list(messages)
    model = None if summary is None else ScriptedChatModel([summary])
    kept = await ContextGuard(budget, compact_model=model, keep_recent=keep_recent).check_and_compact(messages)
    assert messages == before
    validate_pairing(kept)
    assert kept[0] == SYSTEM
    pinned = [message for message in messages if message.pinned]
    assert question in kept or any(message.pinned and message.text.startswith("the ques") for message in kept)
    if estimate_tokens(pinned) <= budget // 2 and estimate_tokens([SYSTEM, *pinned]) <= budget:
        assert [message for message in kept if message.pinned] == pinned
    if estimate_tokens(messages) <= budget:
        assert kept == messages
    elif budget >= 300:
        assert estimate_tokens(kept) <= budget


@given(PIECES, st.integers(0, 8))
def test_only_results_become_placeholders(pieces, keep):  # E-63
    messages = [SYSTEM, *built(pieces)]
    before = list(messages)
    compacted = micro_compact(messages, keep)
    assert messages == before
    validate_pairing(compacted)
    changed = [old for old, new in zip(messages, compacted, strict=True) if old != new]
    assert all(message.role == "tool" for message in changed)
    assert [new.tool_call_id for new in compacted] == [old.tool_call_id for old in messages]


@given(PIECES)
def test_history_cut_at_any_point_can_be_repaired(pieces):  # E-59, E-66, C-10
    messages = built(pieces)
    for start in range(len(messages) + 1):
        for end in range(start, len(messages) + 1):
            part = messages[start:end]
            repaired = repair_history(part)
            validate_pairing(repaired)
            assert [m for m in repaired if m.role == "user"] == [m for m in part if m.role == "user"]


async def test_recent_messages_that_do_not_fit_are_summarised_and_not_lost():  # E-56
    model = ScriptedChatModel(["the card"])
    messages = [SYSTEM, Message.user("the question", pinned=True), *turn(1, 2_400), *turn(2, 2_400)]
    kept = await ContextGuard(1_000, compact_model=model).check_and_compact(messages)
    assert kept[2].text.endswith("the card")
    assert kept[3:] == messages[4:]


@pytest.mark.parametrize("hint", ["react_iteration", "planner_input", "step_dependency", "general"])
async def test_each_hint_has_a_shape_of_its_own(hint):  # E-61
    prompts = {}
    for name in (hint, "general"):
        model = ScriptedChatModel(["s"])
        await ContextGuard(900, compact_model=model).check_and_compact(conversation(), name)
        prompts[name] = model.requests[0]["messages"][0].text
    assert len(set(prompts.values())) == len(prompts)


async def test_the_summary_of_a_run_is_a_work_card():  # E-62
    model = ScriptedChatModel(["s"])
    await ContextGuard(900, compact_model=model).check_and_compact(conversation(), "react_iteration")
    asked = model.requests[0]["messages"][0].text
    for heading in ("Goal", "Facts and figures", "Files", "Errors", "What the user said", "Open tasks", "Next step"):
        assert heading in asked


async def test_reasoning_survives_compaction_with_its_calls():  # E-91
    calls = [ToolCall("c", "echo", {})]
    recent = [Message("assistant", "", tool_calls=calls, reasoning="because"), Message.tool("c", "ok")]
    kept = await ContextGuard(900).check_and_compact([*conversation(), *recent])
    assert kept[-2:] == recent
    assert micro_compact(kept, 0)[-2].reasoning == "because"


def test_only_the_newest_results_stay_whole():  # E-63
    messages = [SYSTEM, *turn(1, 500, 500), *turn(2, 500), Message.user("Observation: " + "o" * 500)]
    kept = micro_compact(messages, keep=2)
    assert [len(m.text) < 100 for m in kept[1:]] == [True, True, True, True, False, False]
    assert [m.tool_call_id for m in kept] == [m.tool_call_id for m in messages]
    assert messages[2].text == "r" * 500
    assert all(len(m.text) < 100 for m in micro_compact(messages, keep=0))
    assert micro_compact(kept, keep=2) is kept


# In the loop


async def test_a_long_run_is_compacted_before_each_call_and_keeps_its_trace(counting):  # E-64, C-11
    big = counting("big", "x" * 5_000)
    model = ScriptedChatModel([*(ToolCall(str(n), "big", {"n": n}) for n in range(30)), "Done."], context_size=16_000)
    seen, journal = [], MemoryJournal()
    options = {"guard": ContextGuard(6_000), "reflect_every": 0, "checklist_from": 0}
    agent = ReActAgent(model, [big.tool], emit=seen.append, journal=journal, **options)
    result = await agent.run("the question")
    assert result.answer == "Done."
    assert all(estimate_tokens(request["messages"]) <= 6_000 for request in model.requests)
    assert any(event.channel == "compact" for event in seen)
    assert sum(len(m.text) for m in result.messages if m.role == "tool") == 150_000
    assert await agent.run("the question") == result


@pytest.mark.parametrize("again", [False, True])
async def test_an_overflow_halves_the_context_once(counting, again):  # E-65
    echo = counting(result="y" * 3_000)
    overflow = ContextOverflow("too long")
    model = ScriptedChatModel([ToolCall("1", "echo", {}), overflow, *([overflow] if again else []), "Done."])
    journal = MemoryJournal()
    result = await ReActAgent(model, [echo.tool], journal=journal).run("q")
    assert estimate_tokens(model.requests[2]["messages"]) <= estimate_tokens(model.requests[1]["messages"]) // 2
    assert result.stop_reason == ("context_irreducible" if again else "final_answer")
    if not again:
        assert await ReActAgent(ScriptedChatModel([]), [echo.tool], journal=journal).run("q") == result


async def test_an_irreducible_context_ends_the_run():
    agent = ReActAgent(ScriptedChatModel([]), instructions="i" * 50_000, guard=ContextGuard(4_000))
    result = await agent.run("q")
    assert (result.stop_reason, result.iterations) == ("context_irreducible", 0)
    assert result.answer


# Earlier turns


def test_clean_history_is_unchanged():  # E-66
    history = [Message.user("q"), *turn(1, 3, 3), Message.assistant("a")]
    assert repair_history(history) == history


def test_a_call_without_a_result_gets_one_and_orphans_go():  # E-66, C-7
    broken = [Message.tool("x", "orphan"), *turn(1, 3, 3)[:2], Message.assistant(""), Message.user("next")]
    repaired = repair_history(broken)
    validate_pairing(repaired)
    assert [m.role for m in repaired] == ["assistant", "tool", "tool", "user"]
    assert "interrupted" in repaired[2].text


MESSAGES = st.lists(
    st.sampled_from([Message.user("u"), Message.assistant("a"), Message.assistant(""), *turn(1, 1, 1), *turn(2, 1)]),
    max_size=12,
)


@given(MESSAGES)
def test_any_history_becomes_valid(messages):  # E-66, C-8
    before = list(messages)
    repaired = repair_history(messages)
    validate_pairing(repaired)
    assert repair_history(repaired) == repaired
    assert messages == before
