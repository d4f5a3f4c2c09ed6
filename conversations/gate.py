"""The gate before every tool call of a run that has no record: permission, a person's word, money.

It is asked when the call is about to happen, out of the model's reach, and the call's start is put on record at once
after it.
"""

from typing import Any

from agentapp.engine import AgentTool, Allow, Deny, Event, RunSuspended, Tool
from conversations.allotments import Amount, BudgetExhausted
from conversations.approvals import permit, request_data
from conversations.asking import ASK_USER, Asking
from conversations.journal import DatabaseJournal
from conversations.models import Run
from conversations.patience import patiently
from conversations.permission import Permissions
from conversations.tools.attachments import OwnFilesTool
from tools_admin.compact import CatalogTool, addressed, readdressed


class Gate:
    def __init__(self, run: Run, journal: DatabaseJournal, permissions: Permissions, asking: Asking) -> None:
        self._run, self._journal, self._permissions, self._asking = run, journal, permissions, asking

    async def decide(self, tool: Tool, arguments: dict[str, Any], key: str, *, signed: bool = False) -> Allow | Deny:
        """Raises RunSuspended when a person has to say so first; what they have signed already asks no more,
        unless others decide on it."""
        if isinstance(tool, CatalogTool | AgentTool | OwnFilesTool):  # what an agent does is asked about call by call
            return Allow()
        name, given = addressed(tool, arguments)
        asked = await self._permissions.of_tool(self._run.user_id, self._run.agent_id, name)
        if asked is None:
            return Deny(f"The tool {name} is not available any more.")
        if name == ASK_USER:
            await self._asking.before(given, key)
        decision: Allow | Deny = Allow()
        if asked.needs_approval and (asked.others_decide or not signed):
            decision = readdressed(tool, name, await self._ask_person(name, given, key))
        if asked.price and isinstance(decision, Allow):
            try:
                await self._journal.purse.reserve(key, Amount(cost=asked.price))
            except BudgetExhausted as exhausted:
                return Deny(exhausted.message)
        return decision

    async def _ask_person(self, tool: str, arguments: dict[str, Any], key: str) -> Allow | Deny:
        try:
            return await patiently(permit, self._run, tool, arguments, key)
        except RunSuspended:
            asked = await patiently(request_data, self._run, key)
            self._journal.note(f"approval/{key}/pending", Event("approval", asked))
            raise
