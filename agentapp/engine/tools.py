"""Tools: what they are called, what they take, and how one of them is run safely."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import contextvars
import inspect
import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .journal import EffectClass
from .json_schema import faults, validator_of, worst_fault
from .untrusted import harmless

FULL_CHARS = 1_000_000
_SPOKEN_TYPES = {"text/html": "HTML", "text/markdown": "Markdown"}


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that a tool made; with `stored` its data lies elsewhere under that id, and `size` says how large it is."""

    filename: str
    content_type: str
    data: bytes
    stored: str = ""
    size: int = 0

    def to_dict(self) -> dict[str, Any]:
        if self.stored:
            described = {"filename": self.filename, "content_type": self.content_type}
            return {**described, "size": self.size, "id": self.stored}
        return {
            "filename": self.filename,
            "content_type": self.content_type,
            "size": len(self.data),
            "data": base64.b64encode(self.data).decode(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Artifact:
        named = data["filename"], data["content_type"]
        if "id" in data:
            return cls(*named, b"", data["id"], data["size"])
        return cls(*named, base64.b64decode(data["data"]))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool found, and the files it made."""

    content: str
    is_error: bool = field(default=False, kw_only=True)
    artifacts: Sequence[Artifact] = field(default=(), kw_only=True)
    content_type: str = field(default="text/plain", kw_only=True)


@dataclass(frozen=True)
class Tool:
    """Something a model may call. `run(**arguments)` is a coroutine function or a plain one, which gets a thread.

    `repeatable` tools may poll with equal arguments; `cacheable` ones give one result per run and arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[..., Any]
    effect_class: EffectClass = field(default=EffectClass.ONCE, kw_only=True)
    needs_approval: bool = field(default=False, kw_only=True)
    timeout: float = field(default=60.0, kw_only=True)
    max_result_chars: int = field(default=50_000, kw_only=True)
    repeatable: bool = field(default=False, kw_only=True)
    cacheable: bool = field(default=False, kw_only=True)

    @cached_property
    def definition(self) -> dict[str, Any]:
        """The function definition that is sent to a model."""
        parameters = {key: value for key, value in self.parameters.items() if key != "$schema"}
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}

    @cached_property
    def _validator(self) -> Any:
        return validator_of(self.parameters)

    def effect_of(self, arguments: Mapping[str, Any]) -> EffectClass:
        """What this very call does; a tool in front of others says it of the one that is meant."""
        return self.effect_class

    def argument_error(self, arguments: Any) -> str | None:
        """What is wrong with these arguments, in words that help a model to repair them."""
        if not isinstance(arguments, dict):
            return f"arguments must be an object, not {type(arguments).__name__}"
        if not is_finite(arguments):
            return "arguments hold NaN or an infinity"
        return worst_fault(self._validator, arguments)

    def argument_errors(self, arguments: Any) -> Iterator[Any]:
        """Each fault that the schema finds, as `jsonschema` describes it."""
        return faults(self._validator, arguments)

    async def execute(self, arguments: dict[str, Any]) -> ToolResult:
        """Runs the tool. Whatever goes wrong inside it is a result with `is_error`."""
        try:
            async with asyncio.timeout(self.timeout) as deadline:
                token = _deadline.set(deadline)
                try:
                    value = await self._invoke(arguments)
                finally:
                    _deadline.reset(token)
        except TimeoutError as error:
            if not deadline.expired():
                return ToolResult(f"TimeoutError: {error}", is_error=True)
            return ToolResult(f"TimeoutError: no result after {self.timeout:g} s", is_error=True)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return ToolResult("CancelledError: the tool cancelled itself", is_error=True)
        except Exception as error:  # noqa: BLE001 (a tool's fault is news for the model, not ours)
            return ToolResult(f"{type(error).__name__}: {error}", is_error=True)
        return as_result(value)

    async def _invoke(self, arguments: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self.run):
            return await self.run(**arguments)
        value = await _in_thread(self.run, arguments)
        return await value if inspect.isawaitable(value) else value


_deadline: contextvars.ContextVar[asyncio.Timeout | None] = contextvars.ContextVar("engine_tool_deadline", default=None)


@contextlib.contextmanager
def clock_stopped() -> Iterator[None]:
    """For a tool that waits for a person: the time it may take does not run meanwhile."""
    deadline, loop = _deadline.get(), asyncio.get_running_loop()
    until = deadline.when() if deadline else None
    if deadline is None or until is None:
        yield
        return
    left = until - loop.time()
    deadline.reschedule(None)
    try:
        yield
    finally:
        deadline.reschedule(loop.time() + left)


MOST_TIMES = 10  # its time-out, for a tool that shows that it is at work


def sign_of_life() -> Callable[[], None]:
    """For a tool that hears how its work goes on: calling what this gives, from any task, lets its time begin anew."""
    deadline, loop = _deadline.get(), asyncio.get_running_loop()
    until = deadline.when() if deadline else None
    seconds = max(0.0, until - loop.time()) if until is not None else 0.0
    last = loop.time() + MOST_TIMES * seconds

    def again() -> None:
        if deadline is not None and deadline.when() is not None and not deadline.expired():
            with contextlib.suppress(RuntimeError):  # the call has ended meanwhile
                deadline.reschedule(min(loop.time() + seconds, last))

    return again


async def _in_thread(run: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """A daemon thread of its own: one that hangs is left behind and takes no place in a pool."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if not future.done():
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

    def body() -> None:
        value: Any = None
        error: Exception | None = None
        try:
            value = context.run(run, **arguments)
        except StopIteration as stop:  # a future refuses this one
            error = RuntimeError(f"StopIteration: {stop}")
        except BaseException as caught:  # noqa: BLE001 (it belongs to the caller, in another thread)
            error = caught if isinstance(caught, Exception) else RuntimeError(repr(caught))
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=body, name=f"tool-{getattr(run, '__name__', 'call')}", daemon=True).start()
    return await future


def as_result(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        return ToolResult(value)
    if value is None:
        return ToolResult("")
    try:
        return ToolResult(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError) as error:
        return ToolResult(f"{type(error).__name__}: the tool returned no JSON value: {error}", is_error=True)


def result_to_dict(result: ToolResult, tool: Tool, elapsed: float) -> dict[str, Any]:
    """The form in which a result is recorded. What goes beyond the tool's limit is for the record alone (`full`)."""
    content = cut_text(result.content, tool.max_result_chars)
    return {
        "content": content,
        **({"full": cut_text(result.content, FULL_CHARS)} if content != result.content else {}),
        "is_error": result.is_error,
        "content_type": result.content_type,
        "artifacts": [artifact.to_dict() for artifact in result.artifacts],
        "elapsed": elapsed,
    }


def error_result(text: str, *, not_run: str | None = None) -> dict[str, Any]:
    """The recorded form of a failure; `not_run` says "invalid" or "refused" of a call that did not run."""
    data = {"content": text, "is_error": True, "content_type": "text/plain", "artifacts": [], "elapsed": 0.0}
    return data if not_run is None else {**data, "not_run": not_run}


def observation_for_model(result: Mapping[str, Any]) -> str:
    """What the model is told of a recorded result."""
    content = harmless(result["content"])
    if result["is_error"]:
        return f"Error: {content}"
    if result["artifacts"] and result["content_type"] in _SPOKEN_TYPES:
        names = ", ".join(artifact["filename"] for artifact in result["artifacts"])
        kind = _SPOKEN_TYPES[result["content_type"]]
        return f"The tool succeeded. Its {kind} output is shown to the user with these files: {names}"
    if not content.strip():
        return "The tool succeeded without output."
    if content in ("[]", "{}", "null"):
        return f"The tool succeeded and found nothing: {content}"
    return content


def cut_text(text: str, limit: int) -> str:
    """The beginning of a text, with a marker that names both sizes."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: {limit:,} of {len(text):,} characters shown]"


def canonical_arguments(arguments: dict[str, Any] | None) -> str:
    """Equal text for equal arguments, whatever the order of keys."""
    return json.dumps(arguments or {}, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)


def is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(is_finite(item) for item in value.values())
    return all(is_finite(item) for item in value) if isinstance(value, list) else True
