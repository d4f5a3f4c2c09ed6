"""May this call happen? Asked at the moment of every call, so it must be cheap.

Tools are asked about here, before their call starts: many questions of many runs in one statement. Model calls need no
question of their own: the record of their start (`writer.RECORD`) is refused when their person or model is disabled,
and then `refusal` says why.
"""

import asyncio
import logging
from typing import NamedTuple
from uuid import UUID

import psycopg

from conversations.connection import RETRY_SECONDS, LoopConnection
from conversations.errors import LeaseLost, ModelDisabled, PersonDisabled
from conversations.models import Run

log = logging.getLogger(__name__)

# `Tool.objects.visible_to`, `Tool.asks_first`, `Agent.given` and the grants of agents in one statement. The agent is
# the run's, as it is now; what those that it may hand work to have counts too, as a call does not say which of them
# makes it.
PERMITTED = """
SELECT asked.place,
    tool.approval = 'always' OR (tool.approval = 'writes' AND tool.effect_class IN ('idempotent', 'once')), tool.price,
    tool.approvers_id IS NOT NULL
FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) WITH ORDINALITY AS asked(person, agent, tool, place)
JOIN accounts_user person ON person.id = asked.person AND person.is_active
JOIN tools_admin_tool tool ON tool.name = asked.tool AND tool.enabled AND NOT tool.changed
JOIN tools_admin_connector connector ON connector.id = tool.connector_id AND connector.enabled
WHERE (NOT EXISTS (SELECT FROM tools_admin_tool_groups granted WHERE granted.tool_id = tool.id)
    OR EXISTS (SELECT FROM tools_admin_tool_groups granted JOIN accounts_user_groups own USING (group_id)
               WHERE granted.tool_id = tool.id AND own.user_id = person.id))
  AND EXISTS (
    SELECT FROM tools_admin_agent agent
    WHERE agent.enabled AND (agent.id = asked.agent
        OR agent.id IN (SELECT to_agent_id FROM tools_admin_agent_delegates WHERE from_agent_id = asked.agent))
      AND (NOT EXISTS (SELECT FROM tools_admin_agent_groups granted WHERE granted.agent_id = agent.id)
        OR EXISTS (SELECT FROM tools_admin_agent_groups granted JOIN accounts_user_groups own USING (group_id)
                   WHERE granted.agent_id = agent.id AND own.user_id = person.id))
      AND (agent.publish_tool_id = tool.id
        OR EXISTS (SELECT FROM tools_admin_agent_tools given
                   WHERE given.agent_id = agent.id AND given.tool_id = tool.id)
        OR EXISTS (SELECT FROM tools_admin_agent_connectors given
                   WHERE given.agent_id = agent.id AND given.connector_id = tool.connector_id)))
"""


class Permit(NamedTuple):
    """Whether a person has to say so first, what the call costs, and whether another person than one's own decides."""

    needs_approval: bool
    price: int
    others_decide: bool


class Permissions:
    """For all runs of a worker; while the database is away the questions wait."""

    def __init__(self) -> None:
        self._line = LoopConnection()
        self._asked: list[tuple[int, int | None, str, asyncio.Future[Permit | None]]] = []
        self._answering: asyncio.Task[None] | None = None

    async def of_tool(self, user_id: int, agent_id: int | None, tool_name: str) -> Permit | None:
        """None when the call is not permitted at all."""
        answer: asyncio.Future[Permit | None] = asyncio.get_running_loop().create_future()
        self._asked.append((user_id, agent_id, tool_name, answer))
        if self._answering is None or self._answering.done():
            self._answering = asyncio.create_task(self._answer_all())
        return await answer

    async def _answer_all(self) -> None:
        """What is asked while an answer is on its way is answered together."""
        while self._asked:
            asked, self._asked = self._asked, []
            try:
                users, agents, tools, _ = map(list, zip(*asked, strict=True))
                permits = await self._look_up(users, agents, tools)
            except Exception as error:  # noqa: BLE001 - whoever waits for the answer has to hear of it
                for *_, answer in asked:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for place, (*_, answer) in enumerate(asked, 1):
                if not answer.done():
                    answer.set_result(permits.get(place))

    async def _look_up(self, users: list[int], agents: list[int | None], tools: list[str]) -> dict[int, Permit]:
        while True:
            try:
                connection = await self._line.get()
                cursor = await connection.execute(PERMITTED, (users, agents, tools), prepare=True)
                return {place: Permit(*row) for place, *row in await cursor.fetchall()}
            except psycopg.OperationalError as error:
                log.warning("The database does not answer (%s); %d calls wait.", str(error).strip()[:200], len(users))
                await self._line.drop()
                await asyncio.sleep(RETRY_SECONDS)


def refusal(run_id: UUID, epoch: int) -> Exception:
    """Why the start of a call was refused (synchronous: call it in a database thread)."""
    run = Run.objects.select_related("user").filter(id=run_id, epoch=epoch, cancel_requested_at=None).first()
    if run is None or run.status != Run.Status.RUNNING:
        return LeaseLost()
    return ModelDisabled() if run.user.is_active else PersonDisabled()
