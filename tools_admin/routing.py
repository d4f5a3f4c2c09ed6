"""Which model answers, and why: an agent's own one, else the first of its route that fits, else the default one."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import time
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q, Value
from django.utils.formats import number_format, time_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from accounts.models import User
from tools_admin.errors import NoModel, NothingFits
from tools_admin.kept import Kept
from tools_admin.models import Agent, LanguageModel, Provider, Route, RouteEntry

GENERAL = "general"


def _everything() -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class Situation:
    """What conditions of routes ask about. Size and budget are asked for only where an entry depends on them.

    `tokens` is the estimated size of the conversation, `budget_left` what is left of the tightest budget in per cent
    (None: there is none), `paused` the models whose circuit breaker is open. `calls`: whoever asks brings tools that a
    model must call natively.
    """

    tools: bool = False
    images: bool = False
    calls: bool = False
    tokens: Callable[[], int] = int
    budget_left: Callable[[], int | None] = _everything
    at: time = field(default_factory=lambda: localtime().time())
    paused: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """The models that may answer, the first one first, and why it is this one. `passed` says why others are not."""

    models: Sequence[LanguageModel]
    reason: str
    route: str = ""
    passed: Sequence[tuple[LanguageModel, str]] = ()

    @property
    def model(self) -> LanguageModel:
        return self.models[0]


def choose(
    agent: Agent | None, user: User | None = None, situation: Situation | None = None, *, route: str = ""
) -> Choice:
    """The models that answer for an agent and a person (None: anybody), or for a `route` by name; raises `NoModel`."""
    situation = situation or Situation()
    pinned, wanted = (None, route or GENERAL) if agent is None else (agent.model_id, agent.route_id or GENERAL)
    instead: Sequence[tuple[LanguageModel, str]] = ()
    if pinned is None:
        entries = entries_of(wanted, user)
        if entries:
            choice = decide(entries, situation)
            if choice.models:
                return choice
            instead = choice.passed
    usable = _usable_by(user)
    if not usable:
        raise NoModel(_no_model())
    if pinned is not None and agent is not None:
        for model in usable:
            if model.pk == pinned:
                return Choice([model], _("the model of the agent %(agent)s") % {"agent": agent.name})
    return _default_choice(usable, pinned is not None, instead)


def check_fits(choice: Choice, situation: Situation, route: str) -> None:
    """For programs, which know what they send: no other model stands in for those of the `route` (empty: an agent's),
    and none takes what it cannot read. Raises `NothingFits`."""
    why = []
    if route and not choice.route and (choice.passed or route != GENERAL):
        why = [f"{model}: {text}" for model, text in choice.passed] or [_("it has no model for you")]
    elif lack := _lack(choice.model, situation):
        why = [f"{choice.model}: {lack}"]
    if why:
        text = _("No model can take this request: %(why)s. Ask another one, or change the request.")
        raise NothingFits(text % {"why": "; ".join(why)})


def choose_for_role(role: str, user: User | None, situation: Situation | None = None) -> Choice | None:
    """The models of a role's route that fit, or None: then the run's own model plays the role too."""
    choice = decide(entries_of(role, user), situation or Situation())
    return choice if choice.models else None


class Candidate(NamedTuple):
    """An entry of a route with its model and provider, and whether the person is in its groups and its model's."""

    entry: RouteEntry
    granted: bool


_entries: Kept[list[Candidate]] = Kept(Route, RouteEntry, LanguageModel, Provider)
_usable: Kept[list[LanguageModel]] = Kept(LanguageModel, Provider)


def entries_of(route: int | str, user: User | None) -> list[Candidate]:
    """The entries of an enabled route (its id or name), in order."""

    def read() -> list[Candidate]:
        which = {"route__name": route} if isinstance(route, str) else {"route": route}
        rows = RouteEntry.objects.filter(route__enabled=True, **which).select_related("route", "model__provider")
        granted: Any = Value(True)
        if user is not None:
            own = RouteEntry.objects.filter(Q(groups=None) | Q(groups__in=user.groups.all()))
            granted = Exists(own.filter(pk=OuterRef("pk"), model__in=LanguageModel.objects.visible_to(user)))
        found = rows.annotate(granted=granted).order_by("position", "id")
        return [Candidate(entry, entry.granted) for entry in found]

    return _entries.get(route, user, read)


def decide(candidates: Sequence[Candidate], situation: Situation) -> Choice:
    """Goes through a route's entries (`entries_of`) in order. Those whose circuit breaker is open come last."""
    healthy, paused = [], []
    passed: list[tuple[LanguageModel, str]] = []
    for entry, granted in candidates:
        if objection := _objection(entry, granted, situation):
            passed.append((entry.model, objection))
        elif entry.model_id in situation.paused:
            paused.append(entry.model)
            passed.append((entry.model, _("it does not answer at the moment")))
        else:
            healthy.append(entry.model)
    models = [*healthy, *paused]
    if not models:
        return Choice([], "", passed=passed)
    route = candidates[0].entry.route.name
    reason = _("the first model that fits on the route %(route)s") % {"route": route}
    before = [f"{model}: {why}" for model, why in passed if model != models[0]]
    return Choice(models, "; ".join([reason, *before]), route, passed)


def _objection(entry: RouteEntry, granted: bool, situation: Situation) -> str:
    """Why an entry is passed over, or nothing."""
    if not (entry.model.enabled and entry.model.provider.enabled):
        return _("it is disabled")
    if entry.model.kind != LanguageModel.Kind.CHAT and entry.route.name != "embedding":
        return _("it is no chat model")
    if not granted:
        return _("it is for other groups")
    if (entry.tools == "with" and not situation.tools) or (entry.tools == "without" and situation.tools):
        return _("only for runs with tools") if entry.tools == "with" else _("only for runs without tools")
    if lack := _lack(entry.model, situation):
        return lack
    if (entry.images == "with" and not situation.images) or (entry.images == "without" and situation.images):
        return _("only for runs with images") if entry.images == "with" else _("only for runs without images")
    return _size_objection(entry, situation) or _budget_objection(entry, situation) or _time_objection(entry, situation)


def _lack(model: LanguageModel, situation: Situation) -> str:
    if situation.images and not model.vision:
        return _("it does not see images")
    return _("it does not call tools") if situation.calls and not model.tool_call else ""


def _size_objection(entry: RouteEntry, situation: Situation) -> str:
    room = max(0, entry.model.context_size - entry.model.max_output_tokens)
    tokens = situation.tokens()
    if entry.min_tokens is not None and tokens < entry.min_tokens:
        return _("only from %(count)s tokens") % {"count": number_format(entry.min_tokens, force_grouping=True)}
    if tokens > (most := room if entry.max_tokens is None else min(room, entry.max_tokens)):
        return _("only up to %(count)s tokens") % {"count": number_format(most, force_grouping=True)}
    return ""


def _budget_objection(entry: RouteEntry, situation: Situation) -> str:
    if entry.min_budget is None or (left := situation.budget_left()) is None or left >= entry.min_budget:
        return ""
    return _("only while %(percent)d %% of the budget are left") % {"percent": entry.min_budget}


def _time_objection(entry: RouteEntry, situation: Situation) -> str:
    begin, end = entry.from_time, entry.until_time
    if begin is None or end is None:
        return ""
    within = begin <= situation.at < end if begin <= end else not end <= situation.at < begin
    return (
        "" if within else _("only from %(begin)s to %(end)s") % {"begin": time_format(begin), "end": time_format(end)}
    )


def _usable_by(user: User | None) -> list[LanguageModel]:
    def read() -> list[LanguageModel]:
        usable = LanguageModel.objects.usable().filter(kind=LanguageModel.Kind.CHAT)
        return list(usable if user is None else usable.visible_to(user))

    return _usable.get(None, user, read)


def _default_choice(
    usable: Sequence[LanguageModel], disabled: bool, passed: Sequence[tuple[LanguageModel, str]]
) -> Choice:
    first = usable[0]
    reason = (
        _("the default model")
        if first.is_default
        else _("the first enabled model, because no default model is enabled")
    )
    why = [_("the agent's own model is disabled or not for this person")] if disabled else []
    if passed:
        why.append(_("no model of the route fits"))
    why += [f"{model}: {text}" for model, text in passed]
    return Choice([first], "; ".join([reason, *why]), passed=passed)


def _no_model() -> str:
    return _(
        "No model is connected. An administrator adds one in the admin under “Models and routing”, "
        "or sets OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL."
    )
