"""The agent for one attempt: as its route would be built for a run, with the task's fault before its tools."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from accounts.models import User
from agentapp.engine import (
    Agent,
    AgentTool,
    Allow,
    CallKind,
    ChatModel,
    Deny,
    EffectClass,
    Limits,
    MemoryJournal,
    ReActAgent,
    Route,
    Tool,
    Usage,
    route_request,
)
from agentapp.engine.comparison import FaultyTools, ScriptedWorker, Task
from conversations.allotments import Amount
from conversations.comparison.money import room
from conversations.comparison.services import DELEGATION
from conversations.models import Comparison
from conversations.modes import build_agent
from conversations.permission import Permissions
from conversations.preparation import Equipment, equipment_of, workflows_of
from conversations.pricing import Pricing
from tools_admin import services as configuration
from tools_admin.clients import ModelClients
from tools_admin.compact import CatalogTool, ExecuteTool, addressed
from tools_admin.errors import NoModel
from tools_admin.models import Agent as AgentRow
from tools_admin.models import LanguageModel
from tools_admin.modes import Mode

READING = (EffectClass.PURE, EffectClass.READ)


class CannotGoOn(Exception):
    """The comparison ends here: its person, its model or its money is gone. The text says which."""


@dataclass(frozen=True, slots=True)
class Kit:
    """What rows say before an attempt. `reading` are the names of tools that change nothing, `judge` grades."""

    equipment: Equipment
    reading: Collection[str]
    judge: ChatModel | None = None
    pricing: Pricing | None = None


@dataclass(slots=True)
class Bench:
    """One attempt's agent, what it works with, and what its calls cost."""

    agent: Agent
    faulty: FaultyTools
    journal: MemoryJournal
    gate: "_Gate"
    pricing: Pricing | None

    def price(self, record: Mapping[str, Any]) -> int:
        if record["kind"] == CallKind.TOOL:
            ran = not record["result"].get("not_run")
            return self.gate.prices.get(record["request"]["name"], 0) if ran else 0
        if record["kind"] != CallKind.LLM or self.pricing is None:
            return 0
        return self.pricing.price(CallKind.LLM, record["result"], Amount()).cost

    def judge_price(self, usage: Usage) -> int:
        result = {"usage": usage.to_dict()}
        return self.pricing.price(CallKind.LLM, result, Amount()).cost if self.pricing else 0


@dataclass(slots=True)
class _Gate:
    """Permission at the moment of each call. Nobody is there to be asked, so only what just reads may run."""

    user_id: int
    agent_id: int | None
    reading: Collection[str]
    permissions: Permissions
    prices: dict[str, int] = field(default_factory=dict)

    async def decide(self, tool: Tool, arguments: dict[str, Any], key: str) -> Allow | Deny:
        if isinstance(tool, CatalogTool | AgentTool):
            return Allow()
        name, _given = addressed(tool, arguments)
        permit = await self.permissions.of_tool(self.user_id, self.agent_id, name)
        if permit is None:
            return Deny(f"The tool {name} is not available any more.")
        if permit.needs_approval or name not in self.reading:
            return Deny(f"The tool {name} may change something or needs approval: not in a comparison.")
        self.prices[tool.name] = permit.price
        return Allow()


def equip(comparison: Comparison, task: Task, clients: ModelClients) -> Kit:
    """Rows as they are now. Raises CannotGoOn."""
    user = User.objects.get(pk=comparison.user_id)
    if not user.is_active:
        raise CannotGoOn("The account of whoever started it was disabled.")
    if comparison.agent_version and not AgentRow.objects.visible_to(user).filter(pk=comparison.agent_id or 0).exists():
        raise CannotGoOn("The agent is gone, disabled, or not for whoever started it any more.")
    left = room(comparison)
    if left.refusal:
        raise CannotGoOn(left.refusal)
    tokens = min(comparison.limits["tokens"], left.tokens or comparison.limits["tokens"])
    limits = Limits(tokens=tokens, cost=left.cost, seconds=comparison.limits["seconds"])
    agent = comparison.agent_version.as_agent() if comparison.agent_version else None
    reading = {row.name for row in configuration.tools_for(agent, user) if EffectClass(row.effect_class) in READING}
    model: ChatModel
    judge, pricing = None, None
    if comparison.scripted:
        model = ScriptedWorker(task)
    else:
        row = _model(comparison, user)
        try:
            model = judge = configuration.chat_chain([row], clients)
        except NoModel as error:
            raise CannotGoOn(str(error)) from None
        pricing = Pricing(model, [row])
    made = equipment_of(agent, user, model)
    tools = [tool for tool in made.tools if tool.name in reading or isinstance(tool, CatalogTool | ExecuteTool)]
    workflows = workflows_of(agent) if agent else []
    return Kit(replace(made, tools=tools, limits=limits, workflows=workflows), reading, judge, pricing)


async def bench(comparison: Comparison, task: Task, route: str, kit: Kit, permissions: Permissions) -> Bench:
    """An agent of this route over a fresh journal. Its only model is the comparison's, in every role."""
    journal, faulty = MemoryJournal(), FaultyTools(task.fault)
    gate = _Gate(comparison.user_id, comparison.agent_id, kit.reading, permissions)
    made = replace(kit.equipment, tools=faulty.wrap(kit.equipment.tools))
    shared = {"journal": journal, "gate": gate.decide}
    return Bench(await _agent(route, task, made, shared), faulty, journal, gate, kit.pricing)


async def _agent(route: str, task: Task, made: Equipment, shared: Mapping[str, Any]) -> Agent:
    if route == Mode.DIRECT:  # costs no model call: a fixed workflow fits, or none does
        chosen = await route_request(made.model, task.question, direct=made.workflows, forced=route)
        return build_agent(chosen, made, shared)
    if route != DELEGATION:
        return build_agent(Route(route, ""), made, shared)
    own: dict[str, Any] = {
        "instructions": made.instructions,
        "max_iterations": made.max_iterations,
        "examples": made.examples,
    }
    helper = ReActAgent(made.model, made.tools, **own).as_tool("ask_helper", "Works on a request with all tools.")
    return ReActAgent(made.model, [helper], limits=made.limits, **shared, **own)


def _model(comparison: Comparison, user: User) -> LanguageModel:
    rows = LanguageModel.objects.usable().visible_to(user).select_related("provider")
    found = rows.filter(pk=comparison.model_id or 0).first()
    if found is None:
        raise CannotGoOn("The model is gone, disabled, or not for whoever started it any more.")
    return found
