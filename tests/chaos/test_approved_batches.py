"""Calls side by side of which one waits for a person: the others are done once, and the model hears of all."""

from collections.abc import Iterator

import pytest

from tests.chaos.installation import Chaos
from tests.conversations.test_main_job import call
from tests.product import Person


@pytest.fixture
def asking(chaos: Chaos) -> Iterator[Chaos]:
    chaos.execute("UPDATE tools_admin_tool SET approval = 'always' WHERE name = 'append_line'")
    yield chaos
    chaos.execute("UPDATE tools_admin_tool SET approval = 'never' WHERE name = 'append_line'")


@pytest.mark.parametrize(("decision", "last"), [("approve", ["react/1/tool/1"]), ("reject", [])])
def test_what_was_done_while_the_other_call_waited_is_not_done_again(
    asking: Chaos, person: Person, decision: str, last: list[str]
) -> None:
    text = f"batch-{decision}"
    run = asking.ask(person, f"use append_once append_line on {text}")["id"]
    asking.waiting(person, run, "approval")
    assert asking.lines(text) == ["react/1/tool/0"]
    asking.end("worker")
    asking.restore()
    asked = len(asking.model.requests)
    (approval,) = call(asking, person, "GET", "/api/v1/approvals")[1]["items"]
    assert call(asking, person, "POST", f"/api/v1/approvals/{approval['id']}", {"decision": decision})[0] == 200
    assert asking.ended(person, run)["status"] == "completed"
    assert asking.lines(text) == ["react/1/tool/0", *last]
    messages = asking.model.requests[asked]["messages"]
    assert [message["role"] for message in messages[-3:]] == ["assistant", "tool", "tool"]
    assert f"Wrote {text}." in messages[-2]["content"]
