"""Makes a run of a request, and says what may be asked."""

from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction

from accounts.models import User
from accounts.rates import count_message
from conversations.cleaning import clean
from conversations.completions.errors import CompletionError, refused, unknown_model
from conversations.completions.presence import awaited_until
from conversations.completions.schemas import CALL, LENGTHS, ONE_CALL, SAMPLING, CompletionIn, ModelOut
from conversations.completions.wire import text_of
from conversations.lifecycle import start_run
from conversations.models import RELAY, Asked, Conversation, Message, Run
from tools_admin.models import Agent, Route
from tools_admin.routing import GENERAL

AGENT, ROUTE = "agent-", "route-"


class Target(NamedTuple):
    """What answers: an agent, or the models of a route."""

    agent: Agent | None = None
    route: str = ""


def offered(user: User) -> list[ModelOut]:
    """The agents and routes that a person may ask, the default agent first."""
    agents = [
        ModelOut(id=f"{AGENT}{agent.pk}", name=agent.name, description=agent.description)
        for agent in Agent.objects.visible_to(user).default_first()
    ]
    routes = {route.name: route.description for route in Route.objects.visible_to(user)}
    routes.setdefault(GENERAL, "The default model.")  # a role that somebody always plays
    return agents + [
        ModelOut(id=f"{ROUTE}{name}", name=name, description=text) for name, text in sorted(routes.items())
    ]


def find(user: User, model: str) -> Target:
    """What an id of `offered` stands for; raises CompletionError."""
    number = model.removeprefix(AGENT)
    if number != model and number.isascii() and number.isdigit() and len(number) < 10:
        agent = Agent.objects.visible_to(user).filter(pk=int(number)).first()
        if agent is not None:
            return Target(agent=agent)
    route = model.removeprefix(ROUTE)
    if route != model and (route == GENERAL or Route.objects.visible_to(user).filter(name=route).exists()):
        return Target(route=route)
    raise unknown_model(model)


def begin(user: User, body: CompletionIn) -> Run:
    """A run that answers the request, in an archived conversation of its own: on record, and out of the way.

    Raises CompletionError, TooOften.
    """
    target = find(user, body.model)
    wire = clean(body.model_dump(exclude_none=True))
    messages = wire["messages"]
    _check_calls(messages)
    if target.agent:
        _check_for_agent(wire)
    count_message(user)
    names = SAMPLING + LENGTHS + (() if target.agent else ONE_CALL)
    question = next((text_of(message["content"]) for message in reversed(messages) if message["role"] == "user"), "")
    with transaction.atomic(durable=True):
        message = Message(role=Message.Role.USER, content=question[: settings.MAX_MESSAGE_CHARS])
        message.conversation = Conversation.objects.create(
            user=user, agent=target.agent, leaf_id=message.id, archived=True, title=Conversation.title_of(question)
        )
        message.save(force_insert=True)
        mode = "" if target.agent else RELAY
        run = start_run(message, user, mode=mode, agent=target.agent, api_key_id=user.by_key_id)
        Asked.objects.create(
            run=run,
            route=target.route,
            awaited_until=awaited_until(),
            messages=messages,
            call={name: wire[name] for name in CALL if name in wire},
            options={name: wire[name] for name in names if name in wire},
        )
    return run


def _check_for_agent(wire: dict[str, Any]) -> None:
    """An agent has tools of its own, and answers in several steps."""
    for name in (*CALL, *ONE_CALL):
        if wire.get(name) and name != "parallel_tool_calls":
            raise refused(f"Agents take no `{name}`: leave it out, or ask a route (`route-…` of GET /v1/models).", name)
    last = len(wire["messages"]) - 1
    if wire["messages"][last]["role"] != "user":
        raise refused("An agent answers a message of the user: it must be the last one.", f"messages[{last}].role")
    if not text_of(wire["messages"][last]["content"]).strip():
        raise refused("The last message is empty: write something.", f"messages[{last}].content")


def _check_calls(messages: list[dict[str, Any]]) -> None:
    """Providers take calls only together with their results, and results only behind their calls."""
    position = 0
    while position < len(messages):
        begin = position
        called = [call["id"] for call in messages[begin].get("tool_calls") or ()]
        position += 1
        while position < len(messages) and messages[position]["role"] == "tool" and called:
            answered = messages[position]["tool_call_id"]
            if answered not in called:
                break
            called.remove(answered)
            position += 1
        if called:
            text = f"These tool calls have no result: {', '.join(called)}. Each needs a message of role tool behind it."
            raise CompletionError(400, text, param=f"messages[{begin}].tool_calls")
        if messages[begin]["role"] == "tool":
            text = "A message of role tool must follow the assistant's message with that call."
            raise CompletionError(400, text, param=f"messages[{begin}].role")
