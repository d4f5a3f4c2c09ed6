import json

import jsonschema
import pytest

from tools_admin.connectors.base import ToolError
from tools_admin.connectors.builtin.connector import BUILTIN
from tools_admin.demo.agent import EXAMPLES, PRESET

WITH_TOOL = [example for example in EXAMPLES if len(example) == 4]


def test_examples_cover_every_tool_and_answers_without_one():
    used = {json.loads(example[1]["content"])["tool_name"] for example in WITH_TOOL}
    assert used == set(BUILTIN)
    assert len(EXAMPLES) >= 7
    assert len(WITH_TOOL) < len(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example[0]["content"])
def test_examples_have_the_form_of_the_engine(example):
    assert [message["role"] for message in example] == ["user", "assistant"] * (len(example) // 2)
    reply = json.loads(example[1]["content"])
    assert len(reply["reasoning"]) <= 100
    if len(example) == 2:
        assert list(reply) == ["type", "reasoning", "answer"]
    else:
        assert list(reply) == ["type", "reasoning", "tool_name", "tool_args"]
        jsonschema.validate(reply["tool_args"], BUILTIN[reply["tool_name"]][0].parameters)
        assert not example[3]["content"].startswith("{")


@pytest.mark.parametrize("example", WITH_TOOL, ids=lambda example: example[0]["content"])
def test_observations_are_what_the_tools_say(example):
    call = json.loads(example[1]["content"])
    if call["tool_name"] == "current_time":
        assert example[2]["content"].startswith(f"Observation: {call['tool_args']['place']}: ")
        return
    try:
        found = BUILTIN[call["tool_name"]][1](**call["tool_args"])
    except ToolError as error:
        found = f"Error: {error}"
    assert example[2]["content"] == f"Observation: {found}"


def test_no_benchmark_question_is_an_example():
    from benchmarks.demo_questions import HELD_OUT, TUNING

    shown = {example[0]["content"].casefold().strip("?!. ") for example in EXAMPLES}
    asked = {question.text.casefold().strip("?!. ") for question in [*HELD_OUT, *TUNING]}
    assert not shown & asked


def test_the_preset_is_plain_json():
    assert json.loads(json.dumps(PRESET)) == PRESET
    assert all(isinstance(starter, str) for starter in PRESET["starters"])
