"""What a run needs before its first call, read from rows in one go (synchronous, in a database thread)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.text import slugify

from accounts.models import User
from agentapp.database import prepared_cursor
from agentapp.engine import ChatModel, DraftRules, Limits, Message, Tool, Workflow, budget_for
from agentapp.engine.messages import Content
from agentapp.plain_rows import Columns
from conversations.allotments import Allotted, settle_lost, unlimited
from conversations.approvals import draft_rules
from conversations.binding import bound_models
from conversations.completions.wire import prelude, talk
from conversations.errors import LeaseLost
from conversations.history import history
from conversations.lifecycle import held
from conversations.models import Asked, Run
from conversations.models import Message as MessageRow
from conversations.pricing import Pricing
from conversations.reading import PROMPT_CHARS
from conversations.talk import talk_of
from conversations.telling import tell_run
from conversations.tools.attachments import READ_ATTACHMENT, read_attachment
from tools_admin import services as configuration
from tools_admin.clients import ModelClients
from tools_admin.models import Agent, LanguageModel
from tools_admin.models import Tool as ToolRow
from tools_admin.models import Workflow as WorkflowRow
from tools_admin.modes import Mode
from tools_admin.shown import Picture

ROLES = ("fast", "reasoning", "planner")


@dataclass(frozen=True, slots=True)
class Publishing:
    """What becomes of an agent's answer before it is given."""

    evaluates: bool = False
    sign_off: bool = False
    rules: DraftRules = field(default_factory=DraftRules)
    tool: Tool | None = None

    @property
    def holds_back(self) -> bool:
        """Whether nothing may be seen of it before."""
        return self.sign_off or bool(self.rules.schema or self.rules.limits or self.rules.allowed or self.tool)


@dataclass(frozen=True, slots=True)
class Equipment:
    """What an agent is made of. `roles` are models for parts of planned work, `delegates` agents that it may ask, each
    with the name and the description of its tool."""

    model: ChatModel
    tools: list[Tool]
    instructions: str = ""
    examples: Sequence[Sequence[Message]] = ()
    max_iterations: int = 50
    limits: Limits = field(default_factory=Limits)
    roles: Mapping[str, ChatModel] = field(default_factory=dict)
    workflows: Sequence[Workflow] = ()
    delegates: Sequence[tuple[str, str, "Equipment"]] = ()
    publishing: Publishing = field(default_factory=Publishing)
    others: Sequence[LanguageModel] = ()  # rows of all models but its own that may be asked
    request: Mapping[str, Any] = field(default_factory=dict)  # tools and form of a call that is only passed on

    def instructed(self, more: str) -> "Equipment":
        """With further instructions behind its own."""
        return replace(self, instructions="\n\n".join(part for part in (self.instructions, more) if part))


@dataclass(frozen=True, slots=True)
class Prepared:
    """The run, its agent's equipment, and what the agent is told."""

    run: Run
    equipment: Equipment
    pricing: Pricing
    allotted: Allotted | None
    query: Content
    history: list[Message]
    pictures: dict[str, Picture] = field(default_factory=dict)
    problems: Sequence[tuple[str, str]] = ()  # names of files of the run's message that it goes without, and why


def equip(
    agent: Agent | None,
    user: User,
    models: Sequence[LanguageModel],
    clients: ModelClients,
    options: Mapping[str, Any] | None = None,
) -> Equipment:
    """The agent as rows describe it now, for one person; without an agent row a model that only talks.

    `options` are the asker's for every request to the model, such as a temperature.
    """
    return equipment_of(agent, user, configuration.chat_chain(models, clients, options))


def equipment_of(agent: Agent | None, user: User, model: ChatModel) -> Equipment:
    """The same with a model that is there already."""
    if agent is None:
        return Equipment(model, [])
    tools = configuration.engine_tools(configuration.tools_for(agent, user), user)
    # Examples are written in the JSON dialect of small models; others would take them for their own calls.
    shown = agent.examples if model.abilities.get("small") else []
    examples = [[Message(part["role"], part["content"]) for part in example] for example in shown]
    limits = Limits(agent.max_model_calls, agent.max_tool_calls, agent.max_tokens, agent.max_cost, agent.max_seconds)
    return Equipment(model, tools, agent.instructions, examples, agent.max_iterations, limits)


def _extended(equipment: Equipment, run: Run, clients: ModelClients, *, images: bool) -> Equipment:
    """With what only some ways of working need."""
    agent = run.agent
    if agent is None:
        return equipment
    others: list[LanguageModel] = []

    def chain(choice: configuration.Choice) -> Sequence[LanguageModel]:
        others.extend(choice.models)
        return choice.models

    delegates = []
    for row in configuration.helpers_of(agent, run.user):
        models = chain(configuration.choose(row, run.user, configuration.Situation(tools=True)))
        delegates.append((f"ask_{slug(row.name)}", row.description, equip(row, run.user, models, clients)))
    roles: dict[str, ChatModel] = {}
    if run.mode not in (Mode.DIRECT, Mode.REACT):
        situation = configuration.Situation(images=images)
        chosen = {role: configuration.choose_for_role(role, run.user, situation) for role in ROLES}
        roles = {role: configuration.chat_chain(chain(choice), clients) for role, choice in chosen.items() if choice}
    workflows: list[Workflow] = []
    if run.mode in (Mode.DIRECT, Mode.AUTO):
        workflows = workflows_of(agent)
    return replace(
        equipment,
        delegates=delegates,
        roles=roles,
        workflows=workflows,
        publishing=_publishing(agent, run.user),
        others=others,
    )


def _publishing(agent: Agent, user: User) -> Publishing:
    tool = None
    if agent.publish_tool_id:
        rows = ToolRow.objects.visible_to(user).filter(pk=agent.publish_tool_id)
        tool = next(iter(configuration.engine_tools(rows, user)), None)
    return Publishing(bool(agent.evaluates), bool(agent.sign_off), draft_rules(agent), tool)


def workflows_of(agent: Agent) -> list[Workflow]:
    return [_workflow(row) for row in agent.lookups]


def _workflow(row: WorkflowRow) -> Workflow:
    return Workflow(
        row.name, row.tool.name, row.description, row.pattern, row.examples, row.tool.parameters, row.template
    )


def slug(name: str) -> str:
    """A name as providers take it in the names of tools."""
    return re.sub(r"[^a-z0-9]+", "_", slugify(name).lower()).strip("_")[:50] or "agent"


_RUN, _MESSAGE, _USER, _ASKED = Columns(Run), Columns(MessageRow), Columns(User), Columns(Asked)
_READ = f"""
SELECT {_RUN.of("run")}, {_MESSAGE.of("message")}, {_USER.of("person")}, {_ASKED.of("asked")}, (
    SELECT (array_agg(began.id ORDER BY began.id))[1] FROM conversations_asked began
    JOIN conversations_run other ON other.id = began.run_id AND other.conversation_id = run.conversation_id
)
FROM conversations_run run
JOIN conversations_message message ON message.id = run.message_id
JOIN accounts_user person ON person.id = run.user_id
LEFT JOIN conversations_asked asked ON asked.run_id = run.id
WHERE run.id = %s
"""  # noqa: S608 - names of columns


def prepare(run_id: UUID, clients: ModelClients) -> Prepared:
    """Reads agent, tools, model and history. Raises NoModel, Unread, LeaseLost,
    ModelUnavailable (the demo model is loading)."""
    run, began = _read(run_id)
    asked: Asked | None = getattr(run, "asked", None)
    with configuration.at_one_moment(run.user):
        run.agent = _agent_of(run)
        spoken = talk_of(run)
        models = bound_models(run, clients, images=spoken.has_pictures)
        kit = equip(run.agent, run.user, models, clients, asked.options if asked else None)
        equipment = _extended(kit, run, clients, images=spoken.has_pictures)
    tell_run(run)
    _settle_lost(run)
    budget = budget_for(equipment.model)
    spoken.room = min(PROMPT_CHARS, budget)  # a quarter of it, at four characters a token
    if spoken.is_too_long and all(tool.name != READ_ATTACHMENT for tool in equipment.tools):
        equipment = replace(equipment, tools=[*equipment.tools, read_attachment(run)])
    pricing = Pricing(equipment.model, [*models, *equipment.others])
    if asked is not None:
        told = talk(asked)
        equipment = replace(equipment.instructed(told.instructions), request=asked.call)
        return Prepared(run, equipment, pricing, unlimited(run), told.query, told.history)
    before = history(spoken, budget // 2)
    if began is not None:
        instructions, first = prelude(Asked.objects.get(pk=began))
        equipment = equipment.instructed(instructions)
        before = [*first, *before]
    pictures = spoken.pictures([*before, Message.user(spoken.query)])
    problems = spoken.problems(sees=bool(equipment.model.abilities.get("vision")), model=str(models[0]))
    return Prepared(run, equipment, pricing, unlimited(run), spoken.query, before, pictures, problems)


def _read(run_id: UUID) -> tuple[Run, int | None]:
    """With its message, its person, and what a program asked for; and what a program began the conversation with, which
    holds for all that follows."""
    with prepared_cursor() as cursor:
        cursor.execute(_READ, [run_id])
        found = cursor.fetchone()
    if found is None:
        raise LeaseLost  # deleted with its conversation
    values = iter(found)
    run, run.message, run.user = _RUN.row(values), _MESSAGE.row(values), _USER.row(values)
    asked = _ASKED.row(values)
    Run._meta.get_field("asked").set_cached_value(run, asked if asked.pk else None)
    return run, next(values)


def _settle_lost(run: Run) -> None:
    """What the worker before left open when it died."""
    if run.reserved_cost or run.reserved_tokens:
        with transaction.atomic(durable=True):
            if locked := held(run.id, run.epoch):
                settle_lost(locked, run.epoch - 1)
                locked.save()
                run.cost, run.tokens, run.reserved_cost, run.reserved_tokens = locked.cost, locked.tokens, 0, 0


def _agent_of(run: Run) -> Agent | None:
    """The agent as it was when the run began: changed since, it is another one for other runs only."""
    if run.agent_version is None and run.agent_id is not None:
        run.agent_version = configuration.publish(run.agent_id)
        if run.model:  # else it is kept together with that
            Run.objects.filter(id=run.id, epoch=run.epoch).update(agent_version=run.agent_version)
    return run.agent_version.as_agent() if run.agent_version else None


def total_usage(run: Run) -> dict[str, Any]:
    """Sums over all calls of the run, also those of selection, compaction and synthesis."""
    names = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
    sums = ", ".join(f"coalesce(sum((usage->>'{name}')::bigint), 0)::bigint" for name in names)
    with prepared_cursor() as cursor:
        cursor.execute(f"SELECT {sums}, count(*) FROM conversations_call WHERE run_id = %s AND kind = 'llm'", [run.id])  # noqa: S608 - names are literals
        row = cursor.fetchone()
    return dict(zip((*names, "calls"), row, strict=True))
