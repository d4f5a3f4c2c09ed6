"""The judge of plans: a bad one costs no tool call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentapp.engine import EffectClass, PlanError, PlanStep, ScriptedChatModel, Tool, ToolRegistry, validate_plan
from agentapp.engine.placeholders import Placeholders

from .planned import NO_WAIT, goal, plan, step

SEARCH = Tool(
    "search",
    "Searches.",
    {
        "type": "object",
        "properties": {
            "q": {"type": "string"},
            "kind": {"enum": ["news", "web"]},
            "most": {"type": "integer", "minimum": 1, "maximum": 10},
        },
        "required": ["q"],
        "additionalProperties": False,
    },
    lambda **_: "found",
    effect_class=EffectClass.READ,
)
ANY = Tool("echo", "Echoes.", {"type": "object"}, lambda **_: "ok", effect_class=EffectClass.READ)
TOOLS = ToolRegistry([SEARCH, ANY])


def rejected(steps, max_steps=12, **options):
    with pytest.raises(PlanError) as caught:
        validate_plan(steps, TOOLS, max_steps=max_steps, **options)
    return caught.value


@pytest.mark.parametrize(
    ("code", "steps"),
    [
        ("plan_empty", []),
        ("plan_too_large", [step(f"E{n}") for n in range(1, 14)]),
        ("plan_too_large", [step("E1", args={"q": "x" * 100_001})]),
        ("plan_duplicate_id", [step("E1"), step(" #e1 ")]),
        ("plan_duplicate_id", [goal("a"), goal("A")]),
        ("plan_unknown_dependency", [step("E1", after=["E9"])]),
        ("plan_cycle", [step("E1", after=["E1"])]),
        ("plan_cycle", [step("E1", after=["E2"]), step("E2", after=["E1"])]),
        ("plan_unknown_tool", [step("E1", "fly")]),
        ("plan_unknown_tool", [step("E1", "", {"q": "x"})]),
        ("plan_bad_arguments", [step("E1", "search")]),
        ("plan_bad_arguments", [step("E1", "search", {"q": 7})]),
        ("plan_bad_arguments", [step("E1", "search", {"q": "x", "else": 1})]),
        ("plan_bad_arguments", [step("E1", "search", {"q": "x", "kind": "video"})]),
        ("plan_bad_arguments", [step("E1", "search", {"q": "x", "most": 11})]),
        ("plan_bad_arguments", [step("E1", args={"x": float("nan")})]),
        ("plan_bad_arguments", [step("E1", args={"x": {1: 2, "a": 3}})]),
        ("plan_bad_arguments", [step("E1"), step("E2", args={"x": {"#E1": 1}}, after=["E1"])]),
        ("plan_undeclared_reference", [step("E1"), step("E2", args={"x": "#E1"})]),
        ("plan_unknown_reference", [step("E1", args={"x": "see #E7"})]),
        ("plan_blank_step", [{**step("E1"), "task": " "}]),
        ("plan_blank_step", [{**goal("a"), "task": None}]),
    ],
)
def test_each_fault_has_its_code(code, steps):  # P-9, P-31
    assert rejected(steps).code == code


def test_both_positions_of_a_doubled_id_are_named():  # P-9
    assert "1 and 3" in rejected([step("E1"), step("E2"), step("#e1")]).message


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_members_of_a_cycle_are_named_and_nobody_else(size):  # P-9
    ring = [step(f"E{n}", after=[f"E{n % size + 1}"]) for n in range(1, size + 1)]
    error = rejected([step("E8"), *ring, step("E9", after=["E1"])])
    assert (error.code, error.step_ids) == ("plan_cycle", tuple(f"E{n}" for n in range(1, size + 1)))


def test_arguments_too_deep_are_too_large():
    value: object = "x"
    for _ in range(5_000):
        value = [value]
    assert rejected([step("E1", args={"x": value})]).code == "plan_too_large"


def test_a_plan_that_is_listed_backwards_is_put_in_order():  # P-9
    steps = validate_plan([step("E3", after=["E2"]), step("E2", after=["E1"]), step("E1")], TOOLS, max_steps=12)
    assert [one.id for one in steps] == ["E1", "E2", "E3"]
    assert [one.position for one in steps] == [3, 2, 1]


def test_steps_that_are_free_keep_the_order_of_the_planner():
    listed = [step(f"E{n}") for n in (3, 1, 10, 2)]
    assert [one.id for one in validate_plan(listed, TOOLS, max_steps=12)] == ["E3", "E1", "E10", "E2"]


def test_ids_and_dependencies_are_one_however_they_are_written():
    steps = validate_plan([step("#e1"), step(2, after=[" E1"])], TOOLS, max_steps=12)
    assert [(one.id, one.depends_on) for one in steps] == [("E1", ()), ("2", ("E1",))]


def test_steps_and_objects_are_both_taken():
    steps = validate_plan([PlanStep("E1", "look", "search", {"q": "x"})], [SEARCH], max_steps=1)
    assert (steps[0].id, steps[0].tool_name, steps[0].tool_args) == ("E1", "search", {"q": "x"})


def test_an_unknown_model_hint_is_none():  # P-41
    steps = validate_plan([goal("a", model_hint="huge"), goal("b", model_hint="fast")], TOOLS, max_steps=8)
    assert [one.model_hint for one in steps] == ["", "fast"]


def test_a_goal_where_a_call_is_wanted_names_no_tool():
    assert rejected([goal("E1")], calls_only=True).code == "plan_unknown_tool"


def test_placeholders_wait_for_their_values():  # plan_bad_arguments: checked after binding
    given_later = step("E2", "search", {"q": "#E1", "most": "#E1", "kind": "#E1"}, after=["E1"])
    assert len(validate_plan([step("E1"), given_later], TOOLS, max_steps=12)) == 2
    assert rejected([step("E1"), step("E2", "search", {"most": "#E1"}, after=["E1"])]).code == "plan_bad_arguments"


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["E1", "#E2"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "task", "tool_name", "tool_args", "depends_on", "steps", "x"]), inner, max_size=5
        )
    ),
    max_leaves=20,
)


@given(JUNK)
def test_junk_raises_a_plan_error_and_nothing_else(junk):
    for steps in (junk, [junk], [step("E1", args=junk)], [{**step("E1"), "depends_on": junk}]):
        try:
            validate_plan(steps, TOOLS, max_steps=5)
        except PlanError as error:
            assert error.code.startswith("plan_")


# Placeholders


def test_placeholders_are_filled_at_any_depth_and_inside_text():  # P-10
    places = Placeholders(["E1", "E2", "E10"])
    value = {"q": {"a": ["x #E1 y", "#e2#E1"], "n": 3}, "b": "#E10"}
    assert places.fill(value, {"E1": "one", "E2": "two", "E10": "ten"}) == {
        "q": {"a": ["x one y", "twoone"], "n": 3},
        "b": "ten",
    }
    assert places.references(value) == ["E1", "E2", "E10"]


def test_a_placeholder_is_never_found_inside_a_longer_one():  # P-10, known fault 14
    assert Placeholders(["E1", "E10"]).references("#E10, #E100") == ["E10", "E100"]
    assert Placeholders(["E1"]).references("#E1a") == []


def test_an_escaped_placeholder_reaches_the_tool_as_it_is_meant():  # P-11
    places = Placeholders(["E1"])
    assert places.references(r"\#E1") == []
    assert places.fill({"x": r"\#E1 is #E1"}, {"E1": "one"}) == {"x": "#E1 is one"}


def test_a_hash_before_another_word_is_text():
    assert Placeholders(["E1"]).fill("#hello #FF00AA #1", {"E1": "x"}) == "#hello #FF00AA #1"


def test_what_stands_in_a_result_is_not_filled_again():
    assert Placeholders(["E1", "E2"]).fill("#E1", {"E1": "#E2", "E2": "no"}) == "#E2"


def test_ids_that_are_more_than_a_word_are_found_whole():
    places = Placeholders(["step-1", "step-10"])
    assert places.references("#step-10 and #step-1.") == ["step-10", "step-1"]


async def test_a_planner_can_be_tested_alone(counting):  # P-24, P-30
    from agentapp.engine import ReWOOAgent

    echo = counting()
    model = ScriptedChatModel([plan(step("E1"), step("E2", args={"x": "#E1"}, after=["E1"]))])
    made = await ReWOOAgent(model, [echo.tool], retry=NO_WAIT).planner().plan("q")
    assert ([one.id for one in made], made.version, echo.bodies, len(model.requests)) == (["E1", "E2"], 1, 0, 1)
    with pytest.raises(PlanError) as caught:
        made[2]
    assert caught.value.code == "plan_unknown_step"  # P-32


def test_an_undeclared_reference_is_added_and_recorded_where_the_policy_says_so():
    steps = [step("E2", args={"q": "x #e1 y"}), step("E1")]
    assert rejected(steps).code == "plan_undeclared_reference"
    first, second = validate_plan(steps, TOOLS, max_steps=12, undeclared="add")
    assert (first.id, second.depends_on, second.added) == ("E1", ("E1",), ("E1",))
    assert second.to_dict()["added"] == ["E1"]
    assert "added" not in first.to_dict()


def test_what_is_added_can_close_a_circle():
    steps = [step("E1", args={"q": "#E2"}), step("E2", args={"q": "#E1"})]
    assert rejected(steps, undeclared="add").code == "plan_cycle"
    assert rejected([step("E1", args={"q": "#E7"})], undeclared="add").code == "plan_unknown_reference"
