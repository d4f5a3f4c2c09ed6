"""Which loop a request gets: code decides where it can, then one constrained model call, then a safe default."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .errors import EngineError, StructuredOutputError
from .events import Emit, phase
from .journal import CallKind, Journal, MemoryJournal, giving
from .json_schema import schema_fault
from .messages import Content, Message
from .models import ChatModel
from .scope import JournaledModel, Scope
from .structured import structured_llm_call

MODES = ("direct", "react", "rewoo", "plan_execute", "dag")
QUERY_CHARS = 2_000

_MEANING = {
    "direct": "one of the fixed workflows below answers it; name it in `workflow`",
    "react": "no tool is needed, or what one result says may change the next call",
    "rewoo": "every tool call can be named now, before any result is known",
    "plan_execute": "a long goal whose steps come one after the other, each with work of its own",
    "dag": "a goal with parts that can be worked on side by side, and whose result must be judged",
}
_TASK = """\
Choose how a request is worked on. Decide by the request alone. The modes:
{modes}
Give the mode, the reason in one short sentence, and in `parameters` the names, figures and codes of the request that \
the work will need, exactly as they are written."""
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*(?![\w.]*\d)")
_SYMBOL = re.compile(r"\b[A-Z][A-Z0-9]{1,5}(?:\.[A-Z]{1,3})?\b")
_QUOTED = re.compile(r"[\"“„«]([^\"”“»]{1,200})[\"”“»]")


@dataclass(frozen=True, slots=True)
class Workflow:
    """A lookup that needs no planning: what it is good for, when it fits, and the tool that does it.

    `pattern` is a regular expression whose named groups are arguments; without a match of it only a router can choose
    the workflow, by its `description` and `examples`. `template` words the answer, with `{result}` and the arguments in
    braces; without one a model does.
    """

    name: str
    tool: str
    description: str = ""
    pattern: str = ""
    examples: Sequence[str] = ()
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    template: str = ""

    def match(self, query: str) -> dict[str, Any] | None:
        """The arguments that code finds in a query, or None where this workflow does not fit it."""
        found = re.search(self.pattern, query, re.IGNORECASE) if self.pattern else None
        if found is None:
            return None
        named = {name: value.strip() for name, value in found.groupdict().items() if value is not None}
        arguments = {name: _typed(value, self._property(name)) for name, value in named.items()}
        return arguments if self.fault(arguments) is None else None

    def fault(self, arguments: Any) -> str | None:
        """Why these arguments do not fit the workflow."""
        if not isinstance(arguments, dict):
            return "the parameters are no object"
        return schema_fault(self.parameters, arguments)

    def _property(self, name: str) -> Mapping[str, Any]:
        found = self.parameters.get("properties", {}).get(name)
        return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Route:
    """The choice: `mode`, why, what was found in the request, and for `direct` the workflow's name.

    `error` tells that the router failed and the default was taken.
    """

    mode: str
    reason: str
    parameters: dict[str, Any] = field(default_factory=dict)
    workflow: str | None = None
    error: str | None = None


async def route_request(
    model: ChatModel,
    query: Content,
    *,
    default: str = "dag",
    direct: Sequence[Workflow] = (),
    forced: str | None = None,
    emit: Emit | None = None,
    journal: Journal | None = None,
    scope: str = "route",
) -> Route:
    """The way for a request. A workflow whose pattern matches, and a `forced` mode, cost no model call.

    Whatever goes wrong, the answer is a known mode; the failure is in `error`, in the record and in a `phase` event.
    """
    if default not in MODES or (forced is not None and forced not in MODES):
        raise ValueError(f"the modes are {', '.join(MODES)}")
    place = Scope(journal or MemoryJournal(), emit, scope)
    text = Message.user(query).text
    chooser = JournaledModel(model, place, "routing", phase("routing"), lambda: place.recorded("made"))
    route = _known(text, direct, forced) or await _chosen(chooser, text[:QUERY_CHARS], default, direct)
    data = asdict(route)
    told = phase("routed", **{key: value for key, value in data.items() if value is not None})
    record = await place.call("made", CallKind.PUBLISH, {}, giving(data), finished=lambda _: (told,))
    return Route(**record)


def extract_parameters(query: str) -> dict[str, Any]:
    """What in a request looks like something a tool will need: quoted names, symbols, figures.

    A symbol is a word of several capitals; where all is written in capitals there is none.
    """
    quoted = [text.strip() for text in _QUOTED.findall(query)]
    shouting = query.upper() == query and len(query.split()) > 2
    symbols = [] if shouting else list(dict.fromkeys(_SYMBOL.findall(query)))
    numbers = [text for text in _NUMBER.findall(query) if not any(text in word for word in symbols)]
    found: dict[str, Any] = {}
    for name, values in (("symbol", symbols), ("quoted", quoted), ("number", numbers)):
        if values:
            found[name] = values[0] if len(values) == 1 else values
    return found


def _known(query: str, direct: Sequence[Workflow], forced: str | None) -> Route | None:
    """What code can decide."""
    if forced not in (None, "direct"):
        return Route(str(forced), "it was chosen by hand", extract_parameters(query))
    for workflow in direct:
        if (arguments := workflow.match(query)) is not None:
            return Route("direct", f"it matches the workflow {workflow.name}", arguments, workflow.name)
    return Route("direct", "it was chosen by hand", extract_parameters(query)) if forced else None


async def _chosen(model: JournaledModel, query: str, default: str, direct: Sequence[Workflow]) -> Route:
    """What a model decides."""
    workflows = {workflow.name: workflow for workflow in direct}
    modes = [mode for mode in MODES if mode != "direct" or workflows]
    lines = "\n".join(f"- {mode}: {_MEANING[mode]}" for mode in modes)
    messages = [Message.system(_TASK.format(modes=lines) + _described(direct)), Message.user(f"Request:\n{query}")]
    seen: dict[str, Any] = {}

    def read(data: dict[str, Any]) -> Route | None:
        if isinstance(data.get("parameters"), dict):
            seen.update(data["parameters"])
        mode = str(data["mode"]).strip().lower().replace("-", "_")
        if mode not in modes:
            return None
        reason = str(data.get("reason") or "")[:500]
        if mode != "direct":
            return Route(mode, reason, extract_parameters(query) | seen)
        workflow = workflows[str(data.get("workflow") or next(iter(workflows)))]
        return Route(mode, reason, dict(seen), workflow.name) if workflow.fault(seen) is None else None

    try:
        result = await structured_llm_call(
            model, messages, _schema(modes, workflows), function_name="route", parse_fn=read
        )
    except StructuredOutputError as error:
        why = str(error)
    except EngineError:  # not the model's: a replay that does not match, a script that is too short
        raise
    except Exception as error:  # noqa: BLE001 (whatever a model does here, the request is worked on)
        why = f"{type(error).__name__}: {error}"
    else:
        route: Route = result.value
        return route
    return Route(default, "the router gave no usable answer", extract_parameters(query) | seen, error=why[:500])


def _schema(modes: Sequence[str], workflows: Mapping[str, Workflow]) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "mode": {"type": "string", "enum": list(modes)},
        "reason": {"type": "string"},
        "parameters": {"type": "object"},
    }
    if workflows:
        properties["workflow"] = {"type": "string", "enum": ["", *workflows]}
    return {"type": "object", "properties": properties, "required": ["mode"]}


def _described(direct: Sequence[Workflow]) -> str:
    if not direct:
        return ""
    lines = []
    for workflow in direct:
        examples = f" Examples: {'; '.join(workflow.examples)}" if workflow.examples else ""
        names = ", ".join(workflow.parameters.get("properties", {}))
        lines.append(f"- {workflow.name}: {workflow.description}{examples} Parameters: {names or 'none'}")
    return "\n\nFixed workflows:\n" + "\n".join(lines)


def _typed(value: str, schema: Mapping[str, Any]) -> Any:
    """A text from a pattern as the schema wants it; what is no such value is left to the schema's judgement."""
    try:
        if schema.get("type") == "integer":
            return int(value)
        if schema.get("type") == "number":
            return float(value)
    except ValueError:
        return value
    return value
