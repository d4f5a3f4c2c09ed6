"""Is this tool still there for this person? Asked at the moment of every call, so it must be cheap."""

import asyncio
import logging

import psycopg

from conversations.connection import RETRY_SECONDS, LoopConnection

log = logging.getLogger(__name__)

# `Tool.objects.visible_to` and `Tool.asks_first` in one statement.
PERMITTED = """
SELECT tool.approval = 'always' OR (tool.approval = 'writes' AND tool.effect_class IN ('idempotent', 'once'))
FROM tools_admin_tool tool JOIN tools_admin_connector connector ON connector.id = tool.connector_id,
     accounts_user person
WHERE tool.name = %s AND tool.enabled AND connector.enabled AND person.id = %s AND person.is_active
  AND (NOT EXISTS (SELECT FROM tools_admin_tool_groups granted WHERE granted.tool_id = tool.id)
       OR EXISTS (SELECT FROM tools_admin_tool_groups granted JOIN accounts_user_groups own USING (group_id)
                  WHERE granted.tool_id = tool.id AND own.user_id = person.id))
"""


class Permissions:
    """For all runs of a worker; while the database is away the question waits."""

    def __init__(self) -> None:
        self._line = LoopConnection()
        self._one_at_a_time = asyncio.Lock()

    async def needs_approval(self, user_id: int, tool_name: str) -> bool | None:
        """Whether a person has to say so first; None when the call is not permitted at all."""
        async with self._one_at_a_time:
            while True:
                try:
                    connection = await self._line.get()
                    cursor = await connection.execute(PERMITTED, (tool_name, user_id), prepare=True)
                    row = await cursor.fetchone()
                    return row[0] if row else None
                except psycopg.OperationalError as error:
                    log.warning("The database does not answer (%s); a call waits.", str(error).strip()[:200])
                    await self._line.drop()
                    await asyncio.sleep(RETRY_SECONDS)
