"""The agent for the mode of a run: chosen by a router where nobody has chosen, with the reason kept on the run."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from agentapp.database import in_thread
from agentapp.engine import (
    Agent,
    ChatModel,
    DAGAgent,
    DirectAgent,
    Lookup,
    Message,
    ModelRegistry,
    PatientModel,
    PlanExecuteAgent,
    ReActAgent,
    RelayAgent,
    ReWOOAgent,
    Route,
    Tool,
    route_request,
)
from conversations.models import RELAY, Run
from conversations.preparation import Equipment, Prepared
from tools_admin.modes import Mode

# What a router falls back on: it can do everything, if not in the quickest way.
SAFE = Mode.REACT


async def agent_for(prepared: Prepared, shared: Mapping[str, Any]) -> Agent:
    """The agent that works on this run. `shared` are journal, emit and gate."""
    run, kit = prepared.run, prepared.equipment
    if run.mode == RELAY:
        return RelayAgent(kit.model, kit.request, **shared)
    if run.mode == Mode.REACT:
        return build_agent(Route(str(Mode.REACT), ""), kit, shared)
    chooser = PatientModel(kit.roles.get("fast", kit.model))
    forced = None if run.mode == Mode.AUTO else run.mode
    route = await route_request(
        chooser,
        Message.user(prepared.query).text,
        default=SAFE,
        direct=kit.workflows,
        forced=forced,
        journal=shared["journal"],
    )
    if run.route != asdict(route):
        await in_thread(_keep, run, route)
    return build_agent(route, kit, shared)


def _keep(run: Run, route: Route) -> None:
    run.route = asdict(route)
    Run.objects.filter(id=run.id, epoch=run.epoch).update(route=run.route)


def build_agent(route: Route, kit: Equipment, shared: Mapping[str, Any]) -> Agent:
    """The agent of a mode that has been chosen."""
    options = {**shared, "instructions": kit.instructions, "limits": kit.limits}
    worker = {**options, "max_iterations": kit.max_iterations, "examples": kit.examples}
    if route.mode == Mode.REACT:
        streams = bool(kit.model.abilities.get("streaming"))
        return ReActAgent(kit.model, _tools(kit), stream_direct=streams, **worker)
    model = PatientModel(kit.model)
    if route.mode == Mode.DIRECT:
        found = next((workflow for workflow in kit.workflows if workflow.name == route.workflow), None)
        lookup = Lookup(found, route.parameters) if found else None
        return DirectAgent(model, kit.tools, lookup=lookup, **options)
    planner = PatientModel(kit.roles["planner"]) if "planner" in kit.roles else None
    if route.mode == Mode.REWOO:
        return ReWOOAgent(model, _tools(kit), planner_model=planner, undeclared="add", **worker)
    if route.mode == Mode.PLAN_EXECUTE:
        return PlanExecuteAgent(model, _tools(kit), planner_model=planner, on_error="replan", **worker)
    return DAGAgent(_registry(kit, model), _tools(kit), planner_model=planner, **worker)


def _registry(kit: Equipment, model: ChatModel) -> ModelRegistry:
    registry = ModelRegistry()
    registry.register(model)
    for role, other in kit.roles.items():
        registry.register(PatientModel(other), (role,))
    return registry


def _tools(kit: Equipment) -> list[Tool]:
    """Its own tools, and each agent that it may ask as one more."""
    agents = [
        ReActAgent(
            other.model,
            other.tools,
            instructions=other.instructions,
            max_iterations=other.max_iterations,
            examples=other.examples,
        ).as_tool(name, description)
        for name, description, other in kit.delegates
    ]
    taken = {tool.name for tool in kit.tools}
    return [*kit.tools, *(agent for agent in agents if agent.name not in taken)]
