"""Comparing routes: task files, faults, graders, what an attempt is worth, and the table of them.

P-60, P-63, P-64, P-65.
"""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentapp.engine import (
    DAGAgent,
    DirectAgent,
    EffectClass,
    MemoryJournal,
    Message,
    ModelRegistry,
    PlanExecuteAgent,
    ReActAgent,
    ReWOOAgent,
    ScriptedChatModel,
    Tool,
    ToolCall,
)
from agentapp.engine.comparison import (
    BadTaskSet,
    Fault,
    FaultyTools,
    ScriptedWorker,
    Task,
    admits,
    attempt,
    figures_of,
    grade,
    read_csv,
    read_yaml,
)
from tools_admin.connectors.builtin import builtin_tools

from .planned import NO_WAIT

STARTER = read_yaml((Path(__file__).parents[2] / "tools_admin/demo/tasks.yaml").read_text())
ROUTES = ("direct", "react", "rewoo", "plan_execute", "dag", "delegation")


def agent_of(route, model, tools, journal):
    options = {"journal": journal, "retry": NO_WAIT}
    if route == "dag":
        registry = ModelRegistry()
        registry.register(model)
        return DAGAgent(registry, tools, **options)
    if route == "delegation":
        helper = ReActAgent(model, tools, retry=NO_WAIT).as_tool("ask_helper", "Helps.")
        return ReActAgent(model, [helper], **options)
    kinds = {"direct": DirectAgent, "react": ReActAgent, "rewoo": ReWOOAgent, "plan_execute": PlanExecuteAgent}
    return kinds[route](model, tools, **options)


async def tried(route, task, model=None, tools=None):
    faulty, journal = FaultyTools(task.fault), MemoryJournal()
    wrapped = faulty.wrap(builtin_tools() if tools is None else tools)
    return await attempt(agent_of(route, model or ScriptedWorker(task), wrapped, journal), task, faulty, journal)


def task_of(id):
    return next(task for task in STARTER.tasks if task.id == id)


# Files


def test_a_task_set_is_written_in_yaml_and_as_a_table():
    made = read_yaml("name: A\ntasks:\n  - {question: q, grader: number, expected: 3, fault: {kind: empty}}")
    same = read_csv("question,grader,expected,fault\nq,number,3,empty\n", "A")
    assert made == same
    assert made.tasks[0].fault == Fault("empty")
    parts = read_csv("question,grader,expected\nq,contains,a | b\n")
    assert parts.tasks[0].expected == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "Line 1, field `tasks`"),
        ("name: [", "Line 1: this is no YAML"),
        ("tasks: []", "Line 1, field `tasks`: there is no task"),
        ("tasks:\n  - q", "Line 2, field `tasks`"),
        ("tasks:\n  - question: q\n    grader: exact", "Line 2, field `expected`: it is missing"),
        ("tasks:\n  - question: q\n    expected: a\n    grader: guess", "Line 4, field `grader`"),
        ("tasks:\n  - question: q\n    grader: number\n    expected: many", "Line 4, field `expected`"),
        ("tasks:\n  - question: q\n    grader: exact\n    expected: a\n    tolerance: 1", "Line 5, field `tolerance`"),
        ("tasks:\n  - question: q\n    grader: schema\n    expected: {type: 7}", "Line 4, field `expected`"),
        ("tasks:\n  - question: q\n    grader: exact\n    expected: a\n    colour: red", "Line 5, field `colour`"),
        ("tasks:\n  - question: q\n    question: r", "Line 3: `question` is there twice"),
        (
            "tasks:\n  - question: q\n    grader: exact\n    expected: a\n    fault:\n      kind: fire",
            "Line 6, field `fault.kind`",
        ),
        (
            "tasks:\n  - question: q\n    grader: exact\n    expected: a\n    fault: {kind: misleading}",
            "Line 5, field `fault.text`",
        ),
        (
            "tasks:\n  - {id: a, question: q, grader: exact, expected: a}\n  - {id: a, question: q, grader: exact, "
            "expected: a}",
            "Line 3, field `id`",
        ),
        (
            "tasks:\n  - question: q\n    grader: exact\n    expected: a\n    script: {calls: [{tool: t, cell: x}], "
            "answer: a}",
            "Line 5, field `script.calls.cell`",
        ),
    ],
)
def test_a_mistake_is_named_with_line_and_field(text, where):
    with pytest.raises(BadTaskSet, match="(?s)^" + where.replace(".", r"\.")):
        read_yaml(text)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "Line 1, field `question`"),
        ("question,answer\n", "Line 1, field `answer`"),
        ("question,grader,expected\n\nq,guess,a\n", "Line 3, field `grader`"),
        ("question,grader,expected\nq,exact,a,b\n", "Line 2: there are more values"),
        ("question,grader,expected,fault\nq,exact,a,fire\n", "Line 2, field `fault`"),
        ("question,grader,expected,fault,fault_times\nq,exact,a,error,0\n", "Line 2, field `fault_times`"),
        ('question,grader,expected\n"q,exact,a\n', "Line 1: this is no CSV"),
    ],
)
def test_a_mistake_in_a_table_is_named_with_its_line(text, where):
    with pytest.raises(BadTaskSet, match="^" + where):
        read_csv(text)


@pytest.mark.parametrize(
    "text",
    [
        "tasks:\n - &a [*a]",
        "tasks: " + "[" * 3_000,
        "\x00",
        "a: !!int x",
        "!!python/object/apply:os.system ['x']",
        "tasks:\n - {question: q, grader: number, expected: " + "9" * 400 + "}",
    ],
)
def test_whatever_a_file_holds_it_is_read_or_refused(text):
    with pytest.raises(BadTaskSet, match=r"^Line "):
        read_yaml(text)


def test_a_small_file_cannot_become_a_large_one():
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for name, before in zip("bcdefg", "abcdef", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    with pytest.raises(BadTaskSet, match="more than"):
        read_yaml(bomb + "tasks: *g")


@pytest.mark.parametrize("text", ["yes", "12:30", "2024-01-09", ".nan"])
def test_what_people_write_stays_text_where_it_is_no_plain_number(text):
    made = read_yaml(f"tasks:\n  - question: q\n    grader: exact\n    expected: {text}")
    assert made.tasks[0].expected == text


# Graders


@pytest.mark.parametrize(
    ("grader", "expected", "tolerance", "answer", "right"),
    [
        ("exact", "Rome", 0, " rome. ", True),
        ("exact", "Rome", 0, "It is Rome", False),
        ("contains", ["Compass", "96"], 0, "The compass: 96 pieces", True),
        ("contains", ["96"], 0, "There are 196", False),
        ("contains", ["1,500"], 0, "a budget of 1500 euros", True),
        ("number", 41779.6, 1.0, "It is 41,779.60 euros", True),
        ("number", 41779.6, 1.0, "Es sind 41.779,60 Euro", True),
        ("number", 20.0, 0, "49, 64 and 20.", True),
        ("number", 1200.0, 0, "It is 120.", False),
        ("schema", {"type": "object", "required": ["n"]}, 0, 'Here: {"n": 1}', True),
        ("schema", {"type": "object", "required": ["n"]}, 0, "{}", False),
    ],
)
async def test_code_grades_where_it_can(grader, expected, tolerance, answer, right):
    graded = await grade(Task("t", "q", grader, expected, tolerance), answer)
    assert graded.right is right
    assert right or graded.why


async def test_a_model_judges_what_no_code_can_tell_and_its_failure_is_no_pass():
    task = Task("t", "Why?", "judge", "because of the rain")
    judge = ScriptedChatModel([ToolCall("1", "grade", {"right": True, "why": "says so"})])
    graded = await grade(task, "It rained.", judge)
    assert graded.right and graded.usage.calls == 1
    assert "It rained." in judge.requests[0]["messages"][1].text
    broken = ScriptedChatModel(["no", "no", "no", "no", "no"])
    assert not (await grade(task, "It rained.", broken)).right
    assert not (await grade(task, "It rained.", None)).right


@pytest.mark.parametrize(
    "text", ["I could not find this out.", "Das konnte ich leider nicht ermitteln.", "", "No data."]
)
def test_an_answer_that_says_what_is_missing_is_known(text):
    assert admits(text)
    assert not admits("There are 5 customers.")


# Attempts


async def test_all_thirty_tasks_run_on_the_scripted_model_without_a_key():  # P-63, P-65
    done = {task.id: await tried("react", task) for task in STARTER.tasks}
    assert len(done) == 30
    assert {id for id, one in done.items() if one.outcome != "completed"} == {
        "misleading-sum",
        "misleading-count",
        "misleading-note",
    }


async def test_the_calls_of_each_route_are_those_to_expect():
    task = task_of("two-notes")
    calls = {route: (await tried(route, task)).usage.calls for route in ROUTES}
    assert calls == {"direct": 1, "react": 4, "rewoo": 2, "plan_execute": 6, "dag": 7, "delegation": 6}


@pytest.mark.parametrize(
    ("fault", "recovery", "outcome"),
    [
        (Fault("error"), "recovered", "completed"),
        (Fault("timeout"), "recovered", "completed"),
        (Fault("empty"), "recovered", "completed"),
        (Fault("error", times=None), "kept_searching", "completed"),  # to say so is all that can be asked
        (Fault("error", tool="another"), "", "completed"),
        (Fault("misleading", text="2 + 2 = 5"), "gave_up", "accepted"),
    ],
)
async def test_what_a_route_makes_of_a_bad_first_result_is_told(fault, recovery, outcome):  # P-60
    base = task_of("percent")
    task = Task("t", base.question, "number", 217.0, 0, fault, base.script)
    done = await tried("react", task)
    assert (done.recovery, done.outcome) == (recovery, outcome)


async def test_a_right_answer_that_nothing_supports_is_wrongly_accepted():
    task = Task("t", "How many?", "number", 7.0, 0, Fault("error", times=None))
    tool = Tool("look", "Looks.", {"type": "object"}, lambda: "7", effect_class=EffectClass.READ)
    model = ScriptedChatModel([ToolCall("1", "look", {}), "There are 7.", "There are 7."])
    assert (await tried("react", task, model, [tool])).outcome == "accepted"


async def test_a_route_that_breaks_has_failed_and_what_it_used_counts():
    def broken(*_, **__):
        raise OSError("away")

    task = Task("t", "q", "exact", "a")
    tool = Tool("look", "Looks.", {"type": "object"}, lambda: "7", effect_class=EffectClass.READ)
    done = await tried("react", task, ScriptedChatModel([ToolCall("1", "look", {}), broken]), [tool])
    assert (done.outcome, done.usage.calls, done.tool_calls) == ("failed", 1, 1)
    assert "away" in done.error


async def test_a_time_out_is_told_at_once():
    tool = Tool("look", "Looks.", {"type": "object"}, lambda: "7", effect_class=EffectClass.READ, timeout=600)
    task = Task("t", "q", "exact", "a", 0, Fault("timeout"))
    model = ScriptedChatModel([ToolCall("1", "look", {}), "I could not find it.", "I could not find it."])
    done = await asyncio.wait_for(tried("react", task, model, [tool]), 60)
    assert (done.outcome, done.recovery) == ("declined", "gave_up")
    assert "no result after 600 s" in str(done.trace)


# The table


def counted(route, outcome="completed", **values):
    names = ("model_calls", "tool_calls", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost")
    fields = dict.fromkeys(names, 0) | {"seconds": 0.0, "recovery": "", "fault": ""} | values
    return SimpleNamespace(route=route, outcome=outcome, **fields)


def test_a_route_that_fails_fast_never_ranks_first():  # P-64
    rows = [counted("thorough", model_calls=9, seconds=9.0), counted("thorough", "failed", model_calls=9)]
    rows += [counted("fast", "failed", model_calls=1), counted("fast", "accepted", model_calls=1)]
    thorough, fast = figures_of(rows)
    assert (thorough.route, fast.route) == ("thorough", "fast")
    assert fast.fewer_calls_but_failed and not thorough.fewer_calls_but_failed
    assert (thorough.completed, fast.accepted) == (0.5, 0.5)


def test_every_attempt_that_was_started_counts():  # P-63
    rows = [counted("react"), counted("react", "broken_off", input_tokens=10, cached_tokens=4), counted("react")]
    [figures] = figures_of(rows)
    assert (figures.started, figures.counts["broken_off"]) == (3, 1)
    assert round(figures.completed, 2) == 0.67
    assert figures.measures["uncached"] == (2.0, 0, 6)
    assert figures.measures["cached"].most == 4


def test_recovery_is_told_apart_by_what_had_to_be_recovered_from():
    rows = [counted("react", fault="error", recovery="recovered"), counted("react", fault="empty", recovery="gave_up")]
    rows += [counted("react", fault="misleading", recovery="kept_searching")]
    [figures] = figures_of(rows)
    assert figures.after_failures == (1, 0, 1)
    assert figures.after_misleading == (0, 1, 0)


async def test_a_scripted_model_counts_the_whole_history_of_each_call():  # P-65
    worker = ScriptedWorker(task_of("five-stocks"))
    short = await worker.chat([Message.user("q")])
    long = await worker.chat([Message.user("q"), Message.assistant("x" * 4_000), Message.user("q")])
    assert long.usage.input_tokens > short.usage.input_tokens + 900
