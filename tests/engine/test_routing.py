"""Which loop a request gets, and why."""

import pytest

from agentapp.engine import (
    MemoryJournal,
    ModelRefused,
    ScriptedChatModel,
    ToolCall,
    Workflow,
    extract_parameters,
    route_request,
)

from .planned import prompt

WEATHER = Workflow(
    "weather",
    "weather",
    "The weather of a place.",
    pattern=r"^(?:what is )?the weather in (?P<place>[\w ]+?)\??$",
    parameters={"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    template="In {place}: {result}",
)
LABELLED = [
    ("What is the weather in Paris?", "direct", None),
    ("the weather in New York", "direct", None),
    ("Hello!", "react", "no tool is needed"),
    ("Why does this query fail?", "react", "each finding may change the next look"),
    ("Find the bug in the import", "react", "a search"),
    ("Who owns the repository, and is the person still here?", "react", "the owner decides the next call"),
    ("Look for a flight, and if there is none for a train", "react", "depends on the first result"),
    ("Continue until the test passes", "react", "feedback"),
    ("Compare the rates of EUR, USD and GBP", "rewoo", "three lookups that are known now"),
    ("Sum up the last three invoices by number: 17, 18, 19", "rewoo", "known calls"),
    ("Give me price and news for NVDA", "rewoo", "two known calls"),
    ("Multiply 12 by the population of Oslo", "rewoo", "lookup, then sum"),
    ("Get the weather of five cities", "rewoo", "known calls"),
    ("Translate these two files", "rewoo", "known calls"),
    ("Write a market study of heat pumps", "plan_execute", "long"),
    ("Prepare the board meeting, step by step", "plan_execute", "in order"),
    ("Migrate the wiki and report on each part", "plan_execute", "in order"),
    ("Plan my move to Lyon from lease to school", "plan_execute", "long"),
    ("Compare four vendors in depth and judge the result", "dag", "parallel parts"),
    ("Due diligence on a company: finances, law, people", "dag", "parallel parts"),
    ("Research three technologies at once and recommend one", "dag", "parallel parts"),
]


def chosen(mode, reason="because", **more):
    return ToolCall("r", "route", {"mode": mode, "reason": reason, **more})


@pytest.mark.parametrize(("query", "mode", "reason"), LABELLED)
async def test_each_request_gets_its_mode_and_the_reason_is_on_record(query, mode, reason):  # P-1
    model = ScriptedChatModel([] if reason is None else [chosen(mode, reason)])
    journal, seen = MemoryJournal(), []
    route = await route_request(model, query, direct=[WEATHER], journal=journal, emit=seen.append)
    assert (route.mode, route.error) == (mode, None)
    assert route.reason == (reason or "it matches the workflow weather")
    assert journal.records["route/made"]["result"]["reason"] == route.reason
    assert seen[-1].data["mode"] == mode


async def test_a_plain_lookup_costs_no_router_call():  # P-4
    model = ScriptedChatModel([])
    route = await route_request(model, "What is the weather in Paris?", direct=[WEATHER])
    assert (route.workflow, route.parameters, model.requests) == ("weather", {"place": "Paris"}, [])


async def test_a_router_can_choose_a_workflow_with_fitting_parameters():  # P-4
    replies = [chosen("direct", workflow="weather", parameters={"place": "Rome"})]
    route = await route_request(ScriptedChatModel(replies), "Will I need an umbrella in Rome?", direct=[WEATHER])
    assert (route.mode, route.workflow, route.parameters) == ("direct", "weather", {"place": "Rome"})
    bad = ScriptedChatModel([chosen("direct", workflow="weather", parameters={"place": 7})] * 9)
    assert (await route_request(bad, "Umbrella?", direct=[WEATHER], default="react")).mode == "react"


@pytest.mark.parametrize(
    "reply", [ModelRefused("no"), RuntimeError("broken"), "nonsense", '{"mode": "magic"}', '{"mode": "direct"}', "[]"]
)
async def test_without_a_clear_answer_the_default_is_taken_and_the_failure_recorded(reply):  # P-2
    seen, journal = [], MemoryJournal()
    model = ScriptedChatModel([reply] * 9)
    route = await route_request(model, "A note on NVDA", default="react", emit=seen.append, journal=journal)
    assert (route.mode, route.parameters) == ("react", {"symbol": "NVDA"})
    assert route.error
    assert seen[-1].data["error"] == route.error == journal.records["route/made"]["result"]["error"]


async def test_what_was_extracted_is_kept_when_the_mode_is_unknown():  # P-2
    model = ScriptedChatModel([chosen("magic", parameters={"city": "Rome"}), *["no"] * 9])
    assert (await route_request(model, "q")).parameters == {"city": "Rome"}


async def test_the_router_sees_two_thousand_characters():  # P-2
    model = ScriptedChatModel([chosen("react")])
    await route_request(model, "x" * 2_000 + "y" * 2_000)
    text = prompt(model.requests[0])
    assert "x" * 2_000 in text
    assert "yy" not in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("I want a note on NVDA", {"symbol": "NVDA"}),
        ("Compare MSFT and SAP.DE over 5 years", {"symbol": ["MSFT", "SAP.DE"], "number": "5"}),
        ("A report on “Deutsche Bahn”, please", {"quoted": "Deutsche Bahn"}),
        ("tell me a joke", {}),
        ("PLEASE HELP ME NOW", {}),
    ],
)
async def test_a_forced_mode_costs_nothing_and_parameters_are_found(query, found):  # P-3, known fault 8
    model = ScriptedChatModel([])
    route = await route_request(model, query, forced="rewoo")
    assert (route.mode, route.parameters, model.requests) == ("rewoo", found, [])
    assert extract_parameters(query) == found


async def test_a_mode_that_does_not_exist_is_an_error_of_the_caller():
    for options in ({"forced": "magic"}, {"default": "magic"}):
        with pytest.raises(ValueError, match="the modes are direct, react"):
            await route_request(ScriptedChatModel([]), "q", **options)


async def test_the_route_is_a_matter_of_the_request_alone():  # P-6
    model = ScriptedChatModel([chosen("rewoo")])
    await route_request(model, "Compare two things")
    assert [message.role for message in model.requests[0]["messages"]] == ["system", "user"]
    assert "decide by the request alone" in prompt(model.requests[0]).lower()


async def test_a_recorded_route_is_not_asked_for_again():
    journal = MemoryJournal()
    first = await route_request(ScriptedChatModel([chosen("dag")]), "q", journal=journal)
    seen = []
    assert await route_request(ScriptedChatModel([]), "q", journal=journal, emit=seen.append) == first
    assert seen == []


async def test_a_failed_router_is_not_asked_again_on_a_replay():
    journal = MemoryJournal()
    first = await route_request(ScriptedChatModel([ModelRefused("no")] * 3), "q", journal=journal)
    assert await route_request(ScriptedChatModel([]), "q", journal=journal) == first


def test_a_number_in_a_pattern_is_a_number():
    workflow = Workflow(
        "n", "t", pattern=r"add (?P<n>\d+)", parameters={"type": "object", "properties": {"n": {"type": "integer"}}}
    )
    assert workflow.match("add 7") == {"n": 7}
    assert workflow.match("subtract 7") is None
