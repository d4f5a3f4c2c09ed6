"""The tool calls of one model reply: judged, permitted, run side by side, recorded."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from .errors import RunSuspended, UnknownOutcome
from .events import tool_done, tool_start
from .journal import CallKind, EffectClass
from .messages import ToolCall
from .scope import Scope
from .tools import Tool, ToolRegistry, error_result, result_to_dict

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


@dataclass(frozen=True, slots=True)
class ToolBatch:
    """Runs the calls of one reply. Each has a slot, its place in the reply; a provider's ids mean nothing here."""

    registry: ToolRegistry
    gate: Gate | None
    scope: Scope
    time: Callable[[], float]
    concurrency: int = 8

    async def run(self, iteration: int, calls: Sequence[ToolCall], refusals: Sequence[str | None]) -> list[Any]:
        """Recorded results in the order of the calls. Slots with a refusal do not run; it is their result.

        Every call comes to its end before `UnknownOutcome` or, after it, `RunSuspended` leaves.
        """
        if len(calls) == 1:
            return [await self._one(iteration, 0, calls[0], refusals[0])]
        places = asyncio.Semaphore(self.concurrency)

        async def bounded(slot: int) -> dict[str, Any]:
            async with places:
                return await self._one(iteration, slot, calls[slot], refusals[slot])

        results = await asyncio.gather(*(bounded(slot) for slot in range(len(calls))), return_exceptions=True)
        errors = [result for result in results if isinstance(result, BaseException)]
        if errors:
            raise min(errors, key=_precedence)
        return results

    async def _one(self, iteration: int, slot: int, call: ToolCall, refusal: str | None) -> dict[str, Any]:
        name = f"{iteration}/tool/{slot}"
        key = self.scope.key(name)
        request: dict[str, Any] = {"name": call.name, "arguments": call.arguments, "call_id": call.id}
        arguments = call.arguments
        tool = self.registry.get(call.name)
        fault = self._fault(tool, call)
        refusal = refusal or fault
        if tool is not None and refusal is None and not self.scope.recorded(name):
            decision = await self._decide(tool, arguments, key)
            if isinstance(decision, Deny):
                refusal = f"denied: {decision.reason}"
            elif decision.arguments is not None and decision.arguments != arguments:
                arguments = request["executed_arguments"] = decision.arguments

        async def effect() -> dict[str, Any]:
            if tool is None or refusal is not None:
                return error_result(refusal or "", invalid=fault is not None)
            result = await self._execute(tool, arguments, key)
            return result if arguments is call.arguments else {**result, "executed_arguments": arguments}

        return await self.scope.call(
            name,
            CallKind.TOOL,
            request,
            effect,
            effect_class=EffectClass.PURE if tool is None or refusal is not None else tool.effect_class,
            started=(tool_start(iteration, key, call.name, arguments),),
            finished=lambda result: (tool_done(iteration, key, call.name, result),),
        )

    async def _execute(self, tool: Tool, arguments: dict[str, Any], key: str) -> dict[str, Any]:
        token = _call_key.set(key)
        begun = self.time()
        try:
            result = await tool.execute(arguments)
        finally:
            _call_key.reset(token)
        return result_to_dict(result, tool, round(max(0.0, self.time() - begun), 6))

    def _fault(self, tool: Tool | None, call: ToolCall) -> str | None:
        """Why this call cannot run at all, in words that help the model to repair it."""
        if tool is None:
            names = ", ".join(self.registry.names) or "none"
            near = difflib.get_close_matches(call.name, self.registry.names, n=3)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            return f"there is no tool named {call.name!r}.{hint} Available tools: {names}"
        problem = call.invalid_reason if call.invalid is not None else tool.argument_error(call.arguments)
        if problem is None:
            return None
        schema = json.dumps(tool.definition["function"]["parameters"], ensure_ascii=False)
        return f"the arguments of {tool.name} are not valid, it did not run. {problem}. Its schema: {schema[:2_000]}"

    async def _decide(self, tool: Tool, arguments: dict[str, Any], key: str) -> Allow | Deny:
        """Asks the gate. Whatever it does wrong, the call does not run."""
        if self.gate is None:
            return Deny("this tool needs an approval, and nobody can give it") if tool.needs_approval else Allow()
        try:
            decision = await self.gate(tool, arguments, key)
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
