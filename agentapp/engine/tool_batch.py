"""The tool calls of one model reply: judged, permitted, run side by side, recorded."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from .delegation import AgentTool, delegate
from .errors import RunSuspended, UnknownOutcome
from .events import Event, tool_done, tool_start
from .journal import CallKind, Effect, EffectClass, giving
from .limits import Spent
from .messages import ToolCall, Usage
from .registry import ToolRegistry
from .scope import Scope
from .tools import Tool, canonical_arguments, error_result, result_to_dict

# A fault may quote what a model wrote, and that may be anything.
FAULT_CHARS = 500
_call_key: ContextVar[str] = ContextVar("engine_call_key")


def current_call_key() -> str:
    """The position of the tool call that is running here: the seed of its idempotency key."""
    return _call_key.get()


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run, with `arguments` in place of the proposed ones when a person edited them."""

    arguments: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str


Gate = Callable[[Tool, dict[str, Any], str], Awaitable[Allow | Deny]]


async def ask(gate: Gate | None, tool: Tool, arguments: dict[str, Any], key: str) -> Allow | Deny:
    """The gate's word, or without one what holds of itself."""
    if gate is None:
        return Deny("this tool needs an approval, and nobody can give it") if tool.needs_approval else Allow()
    return await gate(tool, arguments, key)


@dataclass(frozen=True, slots=True)
class _Place:
    """One call at its position. `arguments` are those that it runs with."""

    iteration: int
    name: str
    key: str
    call: ToolCall
    arguments: dict[str, Any]

    def start(self) -> Event:
        return tool_start(self.iteration, self.key, self.call.name, self.arguments)


@dataclass(frozen=True, slots=True)
class ToolBatch:
    """Runs the calls of one reply. Each has a slot, its place in the reply; a provider's ids mean nothing here."""

    registry: ToolRegistry
    gate: Gate | None
    scope: Scope
    spent: Spent
    time: Callable[[], float]
    concurrency: int = 8
    # Results of cacheable tools, by what was asked of them. A lock each, as equal calls may stand side by side.
    _known: dict[str, dict[str, Any]] = field(default_factory=dict)
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def run(self, iteration: int, calls: Sequence[ToolCall], refusals: Sequence[str | None]) -> list[Any]:
        """Recorded results in the order of the calls. Slots with a refusal do not run; it is their result.

        Every call comes to its end before `UnknownOutcome` or, after it, `RunSuspended` leaves.
        """
        if len(calls) == 1:
            return [await self.one(iteration, 0, calls[0], refusals[0])]
        places = asyncio.Semaphore(self.concurrency)

        async def bounded(slot: int) -> dict[str, Any]:
            async with places:
                return await self.one(iteration, slot, calls[slot], refusals[slot])

        results = await asyncio.gather(*(bounded(slot) for slot in range(len(calls))), return_exceptions=True)
        errors = [result for result in results if isinstance(result, BaseException)]
        if errors:
            raise min(errors, key=_precedence)
        return results

    async def one(self, iteration: int, slot: int, call: ToolCall, refusal: str | None) -> dict[str, Any]:
        """The recorded result of one call."""
        name = f"{iteration}/tool/{slot}"
        place = _Place(iteration, name, self.scope.key(name), call, call.arguments)
        tool = self.registry.get(call.name)
        fault = None if refusal else self._fault(tool, call)
        if tool is not None and not (refusal or fault) and not self._is_decided(place):
            decision = await self._decide(tool, place)
            if isinstance(decision, Deny):
                refusal = f"denied: {decision.reason}"
            elif decision.arguments is not None:
                place = replace(place, arguments=decision.arguments)
        if tool is None or refusal or fault:
            return await self._refuse(place, refusal or fault or "", "invalid" if fault else "refused")
        if isinstance(tool, AgentTool):
            return await self._delegate(place, tool)
        return await (self._once_for_all(place, tool) if tool.cacheable else self._run(place, tool))

    def _is_decided(self, place: _Place) -> bool:
        return self.scope.recorded(place.name) or self.scope.recorded(f"{place.name}/start")

    async def _record(
        self, place: _Place, effect: Effect, effect_class: EffectClass, *, announced: bool = False
    ) -> dict[str, Any]:
        """The journaled call, with its two events. Arguments that a person edited stand beside the proposed ones."""
        call = place.call
        edited = {} if place.arguments == call.arguments else {"executed_arguments": place.arguments}

        async def whole() -> dict[str, Any]:
            return {**await effect(), **edited}

        return await self.scope.call(
            place.name,
            CallKind.TOOL,
            {"name": call.name, "arguments": call.arguments, "call_id": call.id, **edited},
            whole,
            effect_class=effect_class,
            started=() if announced else (place.start(),),
            finished=lambda result: (tool_done(place.iteration, place.key, call.name, result),),
        )

    async def _refuse(self, place: _Place, why: str, not_run: str) -> dict[str, Any]:
        return await self._record(place, giving(error_result(why, not_run=not_run)), EffectClass.PURE)

    async def _run(self, place: _Place, tool: Tool) -> dict[str, Any]:
        async def effect() -> dict[str, Any]:
            token = _call_key.set(place.key)
            begun = self.time()
            try:
                result = await tool.execute(place.arguments)
            finally:
                _call_key.reset(token)
            return result_to_dict(result, tool, round(max(0.0, self.time() - begun), 6))

        return await self._record(place, effect, tool.effect_of(place.arguments))

    async def _once_for_all(self, place: _Place, tool: Tool) -> dict[str, Any]:
        """A cacheable tool gives one result per run and arguments; a failure is no result."""
        asked = f"{tool.name}\0{canonical_arguments(place.arguments)}"
        async with self._locks.setdefault(asked, asyncio.Lock()):
            if (known := self._known.get(asked)) is not None:
                return await self._record(place, giving({**known, "elapsed": 0.0}), EffectClass.PURE)
            result = await self._run(place, tool)
            if not result["is_error"]:
                self._known[asked] = {part: value for part, value in result.items() if part != "executed_arguments"}
            return result

    async def _delegate(self, place: _Place, tool: AgentTool) -> dict[str, Any]:
        """The child works in a longer scope. Its beginning and its answer are recorded around what it does."""
        if self.scope.recorded(place.name):
            recorded = await self._record(place, giving({}), EffectClass.PURE, announced=True)
            if used := recorded.get("spent"):
                self.spent.add(Usage(**used["usage"]), used["cost"], tool_calls=used["tool_calls"])
            return recorded
        start = await self.scope.call(
            f"{place.name}/start",
            CallKind.PUBLISH,
            {"name": place.call.name, "arguments": place.call.arguments},
            giving({"arguments": place.arguments}),
            started=(place.start(),),
        )
        place = replace(place, arguments=start["arguments"])
        scope = self.scope.of_agent(f"{place.name}/agent", place.key)
        result = await delegate(tool, place.arguments["request"], scope, self.gate, self.spent.fork())
        return await self._record(place, giving(result), EffectClass.PURE, announced=True)

    def _fault(self, tool: Tool | None, call: ToolCall) -> str | None:
        """Why this call cannot run at all, in words that help the model to repair it."""
        if tool is None:
            names = ", ".join(self.registry.names) or "none"
            wanted = call.name[:FAULT_CHARS]
            near = difflib.get_close_matches(wanted, self.registry.names, n=3)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            return f"there is no tool named {wanted!r}.{hint} Available tools: {names}"
        problem = call.invalid_reason if call.invalid is not None else tool.argument_error(call.arguments)
        if problem is None:
            return None
        schema = json.dumps(tool.definition["function"]["parameters"], ensure_ascii=False)
        fault = f"the arguments of {tool.name} are not valid, it did not run. {problem[:FAULT_CHARS]}."
        return f"{fault} Its schema: {schema[:2_000]}"

    async def _decide(self, tool: Tool, place: _Place) -> Allow | Deny:
        """Asks the gate. Whatever it does wrong, the call does not run."""
        try:
            decision = await ask(self.gate, tool, place.arguments, place.key)
        except RunSuspended:
            raise
        except Exception as error:  # noqa: BLE001 (a gate fails closed)
            return Deny(f"the permission check failed ({type(error).__name__}: {error})")
        if not isinstance(decision, Allow | Deny):
            return Deny("the permission check gave no decision")
        if isinstance(decision, Allow) and decision.arguments is not None:
            problem = tool.argument_error(decision.arguments)
            return Deny(f"the edited arguments are not valid: {problem}") if problem else decision
        return decision


def _precedence(error: BaseException) -> int:
    """Faults of ours first, then doubt about an effect, then waiting."""
    return 2 if isinstance(error, RunSuspended) else 1 if isinstance(error, UnknownOutcome) else 0
