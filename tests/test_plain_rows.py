"""Plain SQL and the ORM see the same rows."""

from typing import Any

import pytest
from django.db import connection

from accounts.models import User
from agentapp.plain_rows import Columns
from conversations.models import Message, Run, RunEvent
from tests.factories import make_conversation, make_message, make_run, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    model = {"id": 1, "reason": "the \u201cdefault\u201d model"}
    return make_run(make_message(make_conversation(make_user())), model=model)


def test_rows_side_by_side_are_those_of_the_orm(run: Run) -> None:
    runs, people = Columns(Run), Columns(User)
    with connection.cursor() as cursor:
        both = f"SELECT {runs.of('run')}, {people.of('person')} FROM"
        cursor.execute(f"{both} conversations_run run JOIN accounts_user person ON person.id = run.user_id")
        values = iter(cursor.fetchone())
    known = vars(Run.objects.get())
    for name, value in vars(runs.row(values)).items():
        assert name == "_state" or value == known[name], name
    assert people.row(values) == run.user


def test_inserted_and_saved_rows_are_read_by_the_orm(run: Run) -> None:
    message = Message(conversation=run.conversation, role="assistant", content="50 % \u00e4")
    Columns(Message).insert([message])
    assert Message.objects.get(pk=message.pk).content == message.content
    assert Message.objects.get(pk=message.pk).created_at == message.created_at
    events = [RunEvent(run=run, seq=n, channel="run", data={"n": [n]}, key=f"{n}", at=run.created_at) for n in (1, 2)]
    Columns(RunEvent).insert(events)
    assert [event.data for event in RunEvent.objects.order_by("seq")] == [{"n": [1]}, {"n": [2]}]
    run.usage, run.answer = {"calls": 3}, "Done"
    Columns(Run).save(run)
    saved = Run.objects.get()
    assert (saved.usage, saved.answer, saved.model) == ({"calls": 3}, "Done", run.model)


def test_no_row_is_no_statement(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        Columns(Message).insert([])
