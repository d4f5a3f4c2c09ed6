"""P-8: one contract for each way to a model, so that another model or provider is a migration with a test: the plan's
form, the messages inside, the route, and resuming."""

import json
from typing import Any

import openai
import pytest

from agentapp.engine import (
    MemoryJournal,
    ModelChain,
    OpenAIChatModel,
    PatientModel,
    ReActAgent,
    ReWOOAgent,
    ScriptedChatModel,
    ToolCall,
    route_request,
    validate_pairing,
)

from .fake_provider import answer, serving
from .planned import NO_WAIT, step

ADAPTERS = ["scripted", "native", "json mode", "json schema", "plain text", "chain", "patient"]
ABILITIES = {
    "native": {"tool_call": True},
    "json mode": {"json_mode": True},
    "json schema": {"json_mode": True, "json_schema": True},
    "plain text": {},
    "chain": {"tool_call": True},
    "patient": {"tool_call": True},
}


class Endpoint:
    """Models of one way of speaking over a script of replies: a text, or a call's name and arguments."""

    def __init__(self, adapter):
        self.adapter = adapter
        self.closing = []

    async def model(self, *replies):
        if self.adapter == "scripted":
            return ScriptedChatModel([r if isinstance(r, str) else ToolCall("c", *r) for r in replies])
        provider = await self.closing_of(serving(*[self.answer(reply, n) for n, reply in enumerate(replies)]))
        client = openai.AsyncOpenAI(api_key="secret", base_url=provider.url, max_retries=0)
        self.closing.append(client.close)
        model = OpenAIChatModel(client, "m", abilities=ABILITIES[self.adapter])
        if self.adapter == "chain":
            return ModelChain([model])
        return PatientModel(model) if self.adapter == "patient" else model

    async def closing_of(self, context):
        entered = await context.__aenter__()
        self.closing.append(lambda: context.__aexit__(None, None, None))
        return entered

    def answer(self, reply, number):
        message: Any
        if isinstance(reply, str):
            message = {"content": reply}
        elif self.is_native:
            function = {"name": reply[0], "arguments": json.dumps(reply[1])}
            message = {"content": None, "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}]}
        elif reply[0] in ("plan", "route"):
            message = {"content": json.dumps(reply[1])}
        else:
            call = {"type": "tool_call", "reasoning": "", "tool_name": reply[0], "tool_args": reply[1]}
            message = {"content": json.dumps(call)}
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        return answer(body={"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})

    @property
    def is_native(self):
        return self.adapter in ("scripted", "native", "chain", "patient")


@pytest.fixture(params=ADAPTERS)
async def endpoint(request):
    made = Endpoint(request.param)
    yield made
    for close in reversed(made.closing):
        await close()


async def test_a_plan_is_read_and_its_answer_given(endpoint, counting):
    echo = counting()
    model = await endpoint.model(("plan", {"steps": [step("E1"), step("E2", after=["E1"])]}), "The answer.")
    result = await ReWOOAgent(model, [echo.tool], retry=NO_WAIT).run("q")
    assert (result.answer, echo.bodies, result.stop_reason) == ("The answer.", 2, "final_answer")
    assert [one.id for one in result.plan.steps] == ["E1", "E2"]


async def test_a_route_is_chosen_with_its_reason(endpoint):
    model = await endpoint.model(("route", {"mode": "rewoo", "reason": "all is known", "parameters": {"x": "7"}}))
    route = await route_request(model, "q", default="react")
    assert (route.mode, route.reason, route.parameters["x"], route.error) == ("rewoo", "all is known", "7", None)


async def test_the_messages_inside_keep_calls_and_results_together(endpoint, counting):
    model = await endpoint.model(("echo", {"x": 1}), "The answer.")
    echo = counting()
    result = await ReActAgent(model, [echo.tool], retry=NO_WAIT).run("q")
    assert echo.bodies == 1 and "The answer." in result.answer
    validate_pairing(result.messages)
    assert [s.tool_name for s in result.tool_steps] == ["echo"]


async def test_a_run_goes_on_with_another_model_where_it_was(endpoint, counting):
    """The record of a scripted model is enough for any adapter."""
    journal, first = MemoryJournal(), counting()
    script = ScriptedChatModel([ToolCall("p", "plan", {"steps": [step("E1")]}), "The answer."])
    whole = await ReWOOAgent(script, [first.tool], journal=journal, retry=NO_WAIT).run("q")
    kept = {key: record for key, record in journal.records.items() if not key.startswith("answer/")}
    again = counting()
    model = await endpoint.model("The answer.")
    records = json.loads(json.dumps(kept))
    result = await ReWOOAgent(model, [again.tool], journal=MemoryJournal(records), retry=NO_WAIT).run("q")
    assert (result.answer, first.bodies, again.bodies) == (whole.answer, 1, 0)
