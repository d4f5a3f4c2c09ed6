"""Is this tool still there for this person? Asked at the moment of every call, so it must be cheap."""

import asyncio
import logging

import psycopg

from conversations.connection import RETRY_SECONDS, LoopConnection

log = logging.getLogger(__name__)

PERMITTED = """
SELECT tool.needs_approval FROM tools_admin_tool tool, accounts_user person
WHERE tool.name = %s AND tool.enabled AND person.id = %s AND person.is_active
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
