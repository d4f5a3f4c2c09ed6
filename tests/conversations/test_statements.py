"""What a call asks of the database: its start, which is its reservation, and its end."""

import asyncio
from typing import Any

import psycopg
import pytest
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from accounts.models import Budget
from agentapp.database import in_thread
from agentapp.engine import CallKind, ChatModel
from conversations import live
from conversations.allotments import Allotted, Amount, draw
from conversations.appender import Appender
from conversations.errors import LeaseLost
from conversations.journal import DatabaseJournal
from conversations.models import Call, Run
from conversations.permission import Permissions
from conversations.pricing import Pricing
from conversations.purse import Purse
from conversations.writer import Writer
from tests.factories import make_conversation, make_message, make_run, make_user
from tests.rows import make_row
from tools_admin.models import Agent, LanguageModel, Tool

pytestmark = pytest.mark.django_db(transaction=True)

REQUEST = {"model": "large", "role": "part", "size": 100}


async def _reply() -> dict[str, Any]:
    return {"model": "large", "usage": {"input_tokens": 100, "output_tokens": 10}}


def _rows() -> tuple[Run, LanguageModel]:
    model = make_row(LanguageModel, name="large", input_price=1_000_000, output_price=2_000_000, max_output_tokens=100)
    user = make_user("ada")
    Budget.objects.create(user=user, limit=10_000_000)
    return make_run(make_message(make_conversation(user)), "running", epoch=1), model


@pytest.fixture
async def journal() -> Any:
    """A run's journal with a budget, as the worker makes it."""
    run, row = await in_thread(_rows)

    async def ask(spent: Amount, open_calls: Amount, need: Amount) -> Allotted:
        return await in_thread(draw, run.id, 1, spent, open_calls, need)

    model: ChatModel = type("Model", (), {"row": row})()  # type: ignore[assignment]
    writer, appender = Writer(), Appender(live.async_client())
    task = asyncio.create_task(writer.run())
    pricing = Pricing(model, [row])
    yield DatabaseJournal(run.id, 1, writer, appender.open(run.id, 1), {}, 0, Purse(run, None, ask), pricing)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await appender.aclose()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Everything that this process asks of the database."""
    asked: list[str] = []
    execute, execute_sync = psycopg.AsyncConnection.execute, CursorWrapper.execute

    async def counted(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        asked.append(str(query))
        return await execute(self, query, *args, **options)

    def counted_sync(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        asked.append(str(query))
        return execute_sync(self, query, *args, **options)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", counted)
    monkeypatch.setattr(CursorWrapper, "execute", counted_sync)
    return asked


async def test_a_model_call_asks_nothing_beside_its_two_records(journal: Any, statements: list[str]) -> None:
    await journal.call("react/1/llm", CallKind.LLM, REQUEST, _reply)
    statements.clear()
    for number in range(2, 5):
        await journal.call(f"react/{number}/llm", CallKind.LLM, REQUEST, _reply)
    assert len(statements) == 3 * 2
    run = await in_thread(Run.objects.get, id=journal.run)
    assert (run.cost, run.reserved_cost, run.tokens) == (4 * 120, 0, 4 * 110)
    assert run.allotted_cost and run.allotted_cost >= 8 * 300, "the budget was asked once for all of them"


@pytest.mark.parametrize("what", ["person", "model", "provider", "stop"])
async def test_whoever_is_disabled_begins_no_call_and_what_is_going_on_is_recorded(journal: Any, what: str) -> None:
    def disable() -> None:
        run = Run.objects.select_related("user").get(id=journal.run)
        model = LanguageModel.objects.get(name="large")
        if what == "person":
            run.user.is_active = False
            run.user.save()
        elif what == "model":
            model.enabled = False
            model.save()
        elif what == "provider":
            model.provider.enabled = False
            model.provider.save()
        else:
            Run.objects.update(cancel_requested_at=timezone.now())

    async def disabled_meanwhile() -> dict[str, Any]:
        await in_thread(disable)
        return await _reply()

    await journal.call("react/1/llm", CallKind.LLM, REQUEST, disabled_meanwhile)
    with pytest.raises(LeaseLost):
        await journal.call("react/2/llm", CallKind.LLM, REQUEST, _reply)
    run = await in_thread(Run.objects.get, id=journal.run)
    assert run.cost == 120
    assert await in_thread(run.calls.count) == 1


async def test_each_model_of_calls_that_begin_together_is_looked_at(journal: Any) -> None:
    """Steps side by side may ask models of several roles; their starts go into one statement."""

    def disabled() -> int:
        large = LanguageModel.objects.get(name="large")
        return LanguageModel.objects.create(provider=large.provider, name="small", enabled=False).pk

    other = await in_thread(disabled)
    known = journal._pricing.model_id
    journal._pricing.model_id = lambda request: other if request["model"] == "small" else known(request)
    await journal.call("react/1/llm", CallKind.LLM, REQUEST, _reply)
    calls = [
        journal.call("plan/1/1/react/1/llm", CallKind.LLM, REQUEST, _reply),
        journal.call("plan/1/2/react/1/llm", CallKind.LLM, {**REQUEST, "model": "small"}, _reply),
    ]
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(ended[1], LeaseLost)
    assert not await in_thread(Call.objects.filter(key="plan/1/2/react/1/llm").exists)


async def test_questions_of_many_calls_at_once_are_asked_together(journal: Any, statements: list[str]) -> None:
    def make() -> tuple[int, int, Tool]:
        tool, agent = make_row(Tool, price=7, approval="never"), Agent.objects.create(name="A")
        agent.tools.add(tool)
        return Run.objects.get(id=journal.run).user_id, agent.pk, tool

    user, agent, tool = await in_thread(make)
    permissions = Permissions()
    await permissions.of_tool(user, agent, tool.name)
    statements.clear()
    answers = await asyncio.gather(
        *(permissions.of_tool(user, agent, tool.name) for _ in range(20)),
        permissions.of_tool(user, agent, "no such tool"),
    )
    assert answers == [(False, 7, False)] * 20 + [None]
    assert len(statements) == 1
    await permissions._line.drop()
