"""How the tools of a run ask its person: the agent's own question before its call begins, a server's in the middle."""

import asyncio
from typing import Any

from agentapp.engine import Event, RunSuspended, clock_stopped, current_call_key
from conversations import questions
from conversations.journal import DatabaseJournal
from conversations.models import Question, Run
from conversations.patience import patiently
from tools_admin.connectors.person import Answer
from tools_admin.connectors.person import Question as Asked

ASK_USER = "ask_user"
LIVE_SECONDS = 900.0
LOOK_SECONDS = 0.5

_SAID = {
    Question.State.DECLINED: "The user does not want to answer this. Go on without it, or say what is missing.",
    Question.State.EXPIRED: "Nobody answered in time. Go on without it, or say what is missing.",
    Question.State.SUPERSEDED: "The user withdrew the question and says something else instead.",
}
_ACTIONS: dict[str, Any] = {"answered": "accept", "declined": "decline"}


class Asking:
    """Of one run in this worker."""

    def __init__(self, run: Run, journal: DatabaseJournal) -> None:
        self._run, self._journal = run, journal
        self._asked: dict[str, int] = {}

    async def before(self, arguments: dict[str, Any], key: str) -> None:
        """The agent's question; raises RunSuspended until it is settled."""
        question = await patiently(questions.ask, self._run, key, as_question(arguments))
        if question.state == Question.State.PENDING:
            self._tell(question)
            raise RunSuspended("input", key)

    async def ask_user(self, question: str, choices: list[str] | None = None) -> str:
        """The tool itself: it runs when the question before it is settled."""
        row = await patiently(self._run.questions.get, key=current_call_key())
        if row.state == Question.State.ANSWERED:
            return f"The user answers: {row.answer.get('answer', '')}"
        return _SAID[Question.State(row.state)]

    async def in_the_middle(self, asked: Asked) -> Answer:
        """A server's question: its call waits, and the time of the call does not run."""
        call = current_call_key()
        number = self._asked[call] = self._asked.get(call, 0) + 1
        source = str(self._journal.open[call].request.get("name", "")) if call in self._journal.open else ""
        with clock_stopped():
            key = f"{call}?{number}"
            row = await patiently(questions.ask, self._run, key, asked, source, seconds=LIVE_SECONDS)
            if row.state == Question.State.PENDING:
                self._tell(row)
            while row.state == Question.State.PENDING:
                await asyncio.sleep(LOOK_SECONDS)
                row = await patiently(Question.objects.get, id=row.id)
        return Answer(_ACTIONS.get(row.state, "cancel"), row.answer)

    def _tell(self, question: Question) -> None:
        data = questions.question_data(question)
        self._journal.note(f"question/{question.key}/pending", Event("question", data))


def as_question(arguments: dict[str, Any]) -> Asked:
    answer: dict[str, Any] = {"type": "string", "minLength": 1}
    if choices := arguments.get("choices"):
        answer["examples"] = choices
    schema = {"type": "object", "required": ["answer"], "properties": {"answer": answer}}
    return Asked(str(arguments["question"]), schema)
