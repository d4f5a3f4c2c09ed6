"""A model that is waited for: planners, routers and judges would take its absence for an answer."""

import pytest

from agentapp.engine import (
    BadModelRequest,
    LeftAlone,
    MemoryJournal,
    Message,
    ModelUnavailable,
    PatientModel,
    RetryPolicy,
    ReWOOAgent,
    ScriptedChatModel,
    route_request,
)

from .planned import NO_WAIT, plan, step

AT_ONCE = RetryPolicy(retries=2, first_wait=0.0)
AWAY = ModelUnavailable("away")


async def test_it_is_asked_again_before_anyone_hears_of_a_failure():
    model = PatientModel(ScriptedChatModel([AWAY, AWAY, "Here."]), AT_ONCE)
    assert (await model.chat([Message.user("q")])).message.text == "Here."


async def test_a_stream_is_begun_anew():
    model = PatientModel(ScriptedChatModel([AWAY, "Here it is."]), AT_ONCE)
    assert "".join([chunk.content async for chunk in model.stream_chat([Message.user("q")])]) == "Here it is."


async def test_a_model_that_stays_away_suspends_the_run_and_nothing_is_lost(counting):
    echo, records = counting(), {}

    def agent(replies):
        model = PatientModel(ScriptedChatModel(replies), AT_ONCE)
        return ReWOOAgent(model, [echo.tool], journal=MemoryJournal(records), retry=NO_WAIT)

    with pytest.raises(LeftAlone) as caught:
        await agent([plan(step("E1")), AWAY, AWAY, AWAY]).run("q")
    assert (caught.value.reason, caught.value.error) == ("model", AWAY)
    assert (await agent(["Done."]).run("q")).answer == "Done."
    assert echo.bodies == 1


async def test_a_router_that_is_away_is_no_choice():
    with pytest.raises(LeftAlone):
        await route_request(PatientModel(ScriptedChatModel([AWAY] * 3), AT_ONCE), "q", default="react")


async def test_any_other_error_is_the_callers():
    with pytest.raises(BadModelRequest):
        await PatientModel(ScriptedChatModel([BadModelRequest("no")]), AT_ONCE).chat([])
