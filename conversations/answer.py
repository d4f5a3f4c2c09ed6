"""An answer's text on its way to the page."""

from typing import Any

from agentapp.engine import Agent, AgentResult, CallKind, Event, LimitReached
from agentapp.engine.messages import Content
from conversations.appender import RunLog
from conversations.crash_points import reach
from conversations.journal import DatabaseJournal

PIECE_CHARS = 400


class Answer:
    """The text on its way to the page: numbered attempts, deltas with offsets."""

    def __init__(self, journal: DatabaseJournal, log: RunLog) -> None:
        self.text = ""
        self._journal, self._log = journal, log

    def emit(self, event: Event) -> None:
        """The engine's events; all but these two travel with the journal."""
        if event.channel != "answer":
            return
        if event.data["status"] == "start":
            self.text = ""
            self._journal.begin_answer()
        elif event.data["status"] == "delta":
            self._log.delta(event.data["content"], len(self.text), self._journal.attempt)
            self.text += event.data["content"]
            if len(self.text) > PIECE_CHARS:
                reach("K10")


async def deliver(agent: Agent, query: Content, result: AgentResult, journal: DatabaseJournal, answer: Answer) -> str:
    """The answer's text: streamed already, synthesised over the trace, or delivered as the loop found it."""
    if result.streamed:
        return result.answer
    if result.tool_steps and result.stop_reason != "limit:budget":
        try:
            async for _ in agent.stream_answer(query, result):
                pass  # the pieces go out as events; a second attempt makes earlier ones void
            return result.delivered or result.answer
        except LimitReached:
            pass  # what the loop found is an answer, too

    async def publish() -> dict[str, Any]:
        answer.emit(Event("answer", {"status": "start"}))
        for start in range(0, len(result.answer), PIECE_CHARS):
            piece = result.answer[start : start + PIECE_CHARS]
            answer.emit(Event("answer", {"status": "delta", "content": piece}))
        return {"text": result.answer}

    done = Event("answer", {"status": "done", "attempt": 0})
    await journal.call("answer/publish", CallKind.PUBLISH, {}, publish, finished=lambda _: [done])
    return result.answer
