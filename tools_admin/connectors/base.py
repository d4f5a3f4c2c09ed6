"""What every kind of connector is: something that can be checked, lists its tools, and calls one of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID, uuid5

from agentapp.engine import EffectClass, Tool, ToolResult, current_call_key


class ConnectorError(Exception):
    """A connector cannot do its work: wrong settings, refused credential. The text is for admins."""


class ConnectorUnavailable(ConnectorError):
    """Its system does not answer. After some of these in a row calls pause for a while (`breaker.py`)."""


class ToolError(Exception):
    """One call failed in a way that a model can learn from: the text tells it what to do better."""


class ToolChanged(ToolError):
    """The system describes the tool differently than when it was chosen: nobody uses it until that was looked at."""


class SignInWanted(ToolError):
    """The system asks for a sign-in that nobody has set up."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as its connector describes it, before an admin has decided anything about it.

    `key` is what the connector knows it by, `definition` what it needs to call it (JSON, the connector's own).
    """

    name: str
    description: str
    parameters: dict[str, Any]
    effect_class: EffectClass = EffectClass.ONCE
    needs_approval: bool = False
    timeout: float = 60.0
    max_result_chars: int = 50_000
    key: str = ""
    definition: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Authorization:
    """What signs a request in; `secrets` are all values in it that must never be seen."""

    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()


# Asked at the last moment, for the address that the request goes to: nothing comes for any other origin than the
# connector's. `wanted` are alternatives of scheme names as OpenAPI has them; None means whatever is set up.
# Raises ToolError when the person has to connect first.
Authorize = Callable[[str, Sequence[Sequence[str]] | None], Awaitable[Authorization]]


async def nobody(url: str, wanted: Sequence[Sequence[str]] | None = None) -> Authorization:
    return Authorization()


async def no_renewal(signed: Authorization) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Setup:
    """What a connector is made from: its row as it is now, for one person."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    allowed_hosts: frozenset[str] = frozenset()
    timeout: float = 30.0
    authorize: Authorize = nobody
    signs_in: bool = False  # whether a way to sign in is set up at all
    id: int = 0
    version: str = ""
    user_id: int | None = None
    note: Callable[[str], None] = lambda text: None  # told what is sent, for an admin who tries a tool
    refused: Callable[[Authorization], Awaitable[bool]] = no_renewal  # the system does not take it; try again?


class Connector(Protocol):
    """One configured source of tools. Its kind is its key in ``connectors.KINDS``."""

    def __init__(self, setup: Setup) -> None:
        """Reads the settings; raises `ConnectorError` when they are not this kind's."""

    async def check(self) -> str:
        """Say in one line what was found; raise `ConnectorError` when the source cannot be used."""

    async def discover(self) -> Sequence[ToolSpec]:
        """All tools the source offers now."""

    async def call(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolResult:
        """Run a tool with arguments that its schema allows; raise `ToolError` for failures the model should see."""


Call = Callable[[ToolSpec, Mapping[str, Any]], Awaitable[ToolResult]]


# The run whose calls are made in this task: its worker says so.
current_run: ContextVar[UUID | None] = ContextVar("current_run", default=None)
_idempotency_key: ContextVar[str | None] = ContextVar("idempotency_key", default=None)


def idempotency_key() -> str | None:
    """For connectors, within `call`: what a service knows a repetition by. A call that is made again after a crash has
    the same one (UUIDv5 of the run and the call's position). None for tools that are not idempotent, or without a run.
    """
    return _idempotency_key.get()


def engine_tool(call: Call, spec: ToolSpec) -> Tool:
    """The engine's view of a connector's tool. An admin's decisions come in through the spec."""

    async def run(**arguments: Any) -> ToolResult:
        run_id = current_run.get()
        if run_id is not None and spec.effect_class is EffectClass.IDEMPOTENT:
            _idempotency_key.set(str(uuid5(run_id, current_call_key())))
        try:
            return await call(spec, arguments)
        except (ToolError, ConnectorError) as error:
            return ToolResult(str(error), is_error=True)
        finally:
            _idempotency_key.set(None)

    return Tool(
        spec.name,
        spec.description,
        spec.parameters,
        run,
        effect_class=spec.effect_class,
        needs_approval=spec.needs_approval,
        timeout=spec.timeout,
        max_result_chars=spec.max_result_chars,
    )
