"""Whatever a run did, it can be taken up again at any point: nothing recorded happens again, and it ends the same.

D-10, design: the trace is the checkpoint.
"""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentapp.engine import BadModelRequest, ContextOverflow, ModelUnavailable, RunSuspended, ToolCall

from .world import Run, World, final, grouped, in_dialect, recorded_events

NUMBERS = st.integers(0, 3)
CALLS = st.tuples(st.sampled_from(["echo", "bad", "long", "tell", "nothing"]), st.fixed_dictionaries({"n": NUMBERS}))
DELEGATIONS = st.tuples(st.just("helper"), st.fixed_dictionaries({"request": st.sampled_from(["one", "two"])}))
TURNS = st.one_of(
    st.lists(CALLS, min_size=1, max_size=3),
    st.lists(CALLS | DELEGATIONS, min_size=1, max_size=2),
    st.just(""),
    st.just("not an object"),
    st.just(ModelUnavailable("busy")),
    st.just(ContextOverflow("too long")),
    st.sampled_from(["hurry", "in euros"]).map(lambda text: lambda world: world.interrupt(text) or "Too early."),
)
SETTINGS = st.fixed_dictionaries(
    {"native": st.booleans(), "streams": st.booleans(), "small_context": st.booleans(), "many_tools": st.booleans()}
)
SUMMARIES = st.lists(st.sampled_from(["a summary", "", BadModelRequest("no")]), min_size=4, max_size=4)
SELECTIONS = st.sampled_from(
    [
        [ToolCall("s", "choose_tools", {"tools": ["spare_1"]})],
        [BadModelRequest("no"), '{"tools": ["spare_2"]}'],
        [BadModelRequest("no")] * 3,
        ["nothing"] * 5,
    ]
)


def scripts_of(turns, summaries, selection, native, many_tools):
    ends = [final(f"The end {number}.", native) for number in range(30)]
    selecting = selection if many_tools and native else ['{"tools": ["spare_1"]}'] if many_tools else []
    child = [[ToolCall("c", "inner", {"n": 1})], "helped"] * 40
    return {
        "parent": [*selecting, *(in_dialect(turn, number, native) for number, turn in enumerate(turns)), *ends],
        "child": child,
        "compactor": [*summaries * 20],
    }


def after(whole, records, log, length):
    """A run over the first records of a whole one, in a world that knows the rest."""
    prefix = json.loads(json.dumps(dict(list(records.items())[:length])))
    world = World({}, known=whole.world.known)
    seen = {item["id"] for record in prefix.values() for item in (record.get("result") or {}).get("interrupts", ())}
    for key, text in whole.world.puts:
        if key in prefix and f"{key} {text}" not in seen:
            world.queue.put(text, id=f"{key} {text}")
    return prefix, world


def expected_effects(records, log, prefix):
    """Effects of the whole run that are neither on record nor failed before the record that the prefix ends with."""
    places = grouped(log)
    last = max((places[key]["done"] for key in prefix), default=-1)
    return {key for key in places if key not in prefix and (key in records or places[key]["ran"] > last)}


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TURNS, max_size=7), SETTINGS, SUMMARIES, SELECTIONS, st.data())
async def test_a_run_resumed_over_any_prefix_repeats_nothing_and_ends_the_same(
    turns, options, summaries, selection, data
):
    scripts = scripts_of(turns, summaries, selection, options["native"], options["many_tools"])
    whole = Run(World(scripts), None, **options)
    result = await whole.work()
    records, log = json.loads(json.dumps(whole.journal.records)), whole.journal.log
    length = data.draw(st.integers(0, len(records)))
    prefix, world = after(whole, records, log, length)
    resumed = Run(world, dict(prefix), **options)
    again = await resumed.work()
    assert (again, again.usage, again.delivered) == (result, result.usage, result.delivered)
    assert json.loads(json.dumps(resumed.journal.records)) == records
    assert {key for what, key in resumed.journal.log if what == "ran"} == expected_effects(records, log, prefix)
    new = {key: record for key, record in records.items() if key not in prefix}
    assert resumed.durable_events() >= recorded_events(new)
    assert not resumed.durable_events() & recorded_events(prefix) - recorded_events(new)
    if length == len(records):
        assert resumed.texts() == []


async def test_helpers_that_failed_are_not_tried_again_on_a_replay():
    """Selection and compaction, all of whose calls failed: only that the run went on tells it."""
    options = {"native": True, "streams": False, "small_context": True, "many_tools": True}
    turns = [[("long", {"n": number})] for number in range(3)]
    no = BadModelRequest("no")
    whole = Run(World(scripts_of(turns, [no] * 4, [no] * 3, native=True, many_tools=True)), None, **options)
    result = await whole.work()
    failed = {key for what, key in whole.journal.log if what == "ran"} - set(whole.journal.records)
    assert {key.split("/")[0] for key in failed} == {"select", "react"}
    resumed = Run(World({}, known=whole.world.known), dict(whole.journal.records), **options)
    assert await resumed.work() == result
    assert (resumed.journal.log, resumed.events, resumed.world.asked.total()) == ([], [], 0)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    "turns", [[[("echo", {"n": 1}), ("bad", {}), ("echo", {"n": 3})]], [[("helper", {"request": "one"})]]]
)
async def test_a_run_that_waits_for_a_person_repeats_nothing_when_it_goes_on(turns, native):
    options = {"native": native, "streams": False, "small_context": False, "many_tools": False}
    world = World(scripts_of(turns, ["s"], [], native, many_tools=False))
    waiting = Run(world, None, suspends=True, **options)
    with pytest.raises(RunSuspended):
        await waiting.work()
    asked = world.asked.total()
    records = waiting.journal.records
    resumed = Run(world, records, **options)
    result = await resumed.work()
    done_before = {key for what, key in waiting.journal.log if what == "done"}
    assert not done_before & {key for what, key in resumed.journal.log if what == "ran"}
    assert world.asked.total() > asked
    assert result.answer == "The end 0."
    complete = Run(World({}, known=world.known), dict(records), **options)
    assert await complete.work() == result
    assert complete.journal.log == []
    assert complete.events == []
