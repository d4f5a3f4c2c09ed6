"""Answers that are not given at once: brought into their form, judged, signed by a person, and only then published.

A draft waits as an approval like any other, bound to the digest of its values. What a person changes is checked like
the draft itself and judged again; a draft that is rejected, or that nobody signs in time, ends the run.
"""

from typing import Any

from agentapp.engine import (
    Agent,
    AgentResult,
    Allow,
    CallKind,
    Deny,
    Event,
    PatientModel,
    RunSuspended,
    Tool,
    Verdict,
    draft_of,
    draft_text,
    evaluate_draft,
    require_durable,
)
from agentapp.engine.limits import Limits, Spent
from agentapp.engine.messages import Message, ToolCall
from agentapp.engine.registry import ToolRegistry
from agentapp.engine.scope import Scope
from agentapp.engine.tool_batch import ToolBatch
from conversations.approvals import ask_to_sign, request_data
from conversations.gate import Gate
from conversations.journal import DatabaseJournal
from conversations.patience import patiently
from conversations.preparation import Prepared

MOST_CHANGES = 5  # of one draft; then nobody is asked any more
PIECE_CHARS = 400


class NotSigned(Exception):
    """The draft was rejected, expired or withdrawn (`reason`): the run ends, and nothing is published."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Publisher:
    """Of one run."""

    def __init__(self, prepared: Prepared, journal: DatabaseJournal, gate: Gate, emit: Any) -> None:
        self._run, self._query = prepared.run, Message.user(prepared.query).text
        self._wishes = prepared.equipment.publishing
        self._model = PatientModel(prepared.equipment.model)
        self._journal, self._gate, self._emit = journal, gate, emit
        if self._wishes.sign_off:
            require_durable(journal)

    async def judge(self, result: AgentResult, text: str, place: int = 0) -> Verdict | None:
        """A second look at a text, if the agent wants one."""
        if not (self._wishes.evaluates or self._wishes.sign_off):
            return None
        evidence = [_evidence(step) for step in result.tool_steps]
        return await evaluate_draft(
            self._model, self._query, text, evidence, journal=self._journal, scope=f"evaluate/{place}"
        )

    async def publish(self, agent: Agent, result: AgentResult) -> str:
        """The text that was published. Raises NotSigned, BadDraft, RunSuspended."""
        rules = self._wishes.rules
        draft = await draft_of(
            self._model, self._query, await _text(agent, self._query, result), rules, journal=self._journal
        )
        key = "publish/0"
        for place in range(MOST_CHANGES + 1):
            verdict = await self.judge(result, draft_text(draft, rules), place)
            if not self._wishes.sign_off:
                break
            if place and verdict is not None and verdict.verdict == "pass":
                break  # whoever changed it has signed it
            if place == MOST_CHANGES:
                raise NotSigned("too_many_changes")
            key = f"publish/{place}"
            changed = await self._signed(draft, key)
            if changed is None:
                break
            draft = changed
        if (problem := rules.fault(draft)) is not None:
            raise NotSigned(f"out of bounds: {problem}"[:60])
        text = draft_text(draft, rules)
        if self._wishes.tool is not None:
            text += await self._hand_over(self._wishes.tool, draft)
        return await self._tell(key, draft, text)

    async def _signed(self, draft: dict[str, Any], key: str) -> dict[str, Any] | None:
        """The draft as a person changed it, or None as it is."""
        try:
            decision = await patiently(ask_to_sign, self._run, draft, key)
        except RunSuspended:
            asked = await patiently(request_data, self._run, key)
            self._journal.note(f"approval/{key}/pending", Event("approval", asked))
            raise
        if isinstance(decision, Deny):
            raise NotSigned(decision.reason)
        return decision.arguments

    async def _tell(self, key: str, draft: dict[str, Any], text: str) -> str:
        """Into the conversation; the record uses up the signature."""

        async def effect() -> dict[str, Any]:
            self._emit(Event("answer", {"status": "start"}))
            for start in range(0, len(text), PIECE_CHARS):
                self._emit(Event("answer", {"status": "delta", "content": text[start : start + PIECE_CHARS]}))
            return {"text": text}

        done = Event("answer", {"status": "done", "attempt": 0})
        request = {"draft": draft}
        record = await self._journal.call(key, CallKind.PUBLISH, request, effect, finished=lambda _: [done])
        return str(record["text"])

    async def _hand_over(self, tool: Tool, draft: dict[str, Any]) -> str:
        """To a tool, once, through the gate of all calls. A signature stands for its approval."""

        async def gate(tool: Tool, arguments: dict[str, Any], key: str) -> Allow | Deny:
            decision = await self._gate.decide(tool, arguments, key, signed=self._wishes.sign_off)
            changed = decision.arguments if isinstance(decision, Allow) else None
            problem = None if changed is None else self._wishes.rules.fault(changed)
            return decision if problem is None else Deny(f"out of bounds: {problem}")

        batch = ToolBatch(ToolRegistry([tool]), gate, Scope(self._journal, None, "publish"), Spent(Limits()), _no_time)
        (result,) = await batch.run(1, [ToolCall("publish", tool.name, draft)], [None])
        return f"\n\n{tool.name}: {result['content']}"


def _no_time() -> float:
    return 0.0


async def _text(agent: Agent, query: str, result: AgentResult) -> str:
    if result.streamed or not result.tool_steps:
        return result.answer
    async for _ in agent.stream_answer(query, result):
        pass
    return result.delivered or result.answer


def _evidence(step: Any) -> str:
    found = step.observation if step.error is None else f"FAILED: {step.error}"
    return f"{step.tool_name}({step.arguments}):\n{found}"
