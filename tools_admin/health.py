"""Which models answer at the moment: a circuit breaker for each, shared by all workers through Redis or Valkey.

Five failures in a row (5xx, timeout, no connection; never a 4xx) open it for a minute. Then one call may try; what
comes of it decides. A process looks at the shared state once a second while it calls models, so that a healthy
model costs its calls nothing. Without the broker every model counts as healthy.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import redis
from django.conf import settings

from agentapp.valkey import async_client, sync_client

log = logging.getLogger(__name__)

FAILURES, PROBE_SECONDS, REFRESH_SECONDS = 5, 300, 1.0
KEY = "models:health"  # a hash: "<model>:failures" → how many in a row, "<model>:until" → its pause's end (server time)

# ARGV: model, failures that open, seconds of the pause. Gives the failures in a row.
FAILED = """
local failures = redis.call('HINCRBY', KEYS[1], ARGV[1] .. ':failures', 1)
if failures >= tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], ARGV[1] .. ':until', redis.call('TIME')[1] + ARGV[3])
end
redis.call('DEL', KEYS[1] .. ':probe:' .. ARGV[1])
return failures
"""
# All fields, and behind them the server's time.
READ = "local all = redis.call('HGETALL', KEYS[1]); all[#all + 1] = redis.call('TIME')[1]; return all"


class State(NamedTuple):
    """`pause` is how many seconds no call goes to the model; 0 after that means that one may try."""

    failures: int
    pause: float | None

    @property
    def is_open(self) -> bool:
        return self.pause is not None


def read(rows: list[bytes]) -> dict[int, State]:
    """What `READ` gave, by model."""
    *pairs, now = rows
    fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
    found: dict[int, State] = {}
    for name, value in fields.items():
        model, _, kind = name.decode().partition(":")
        if kind == "failures":
            until = fields.get(f"{model}:until".encode())
            found[int(model)] = State(int(value), None if until is None else max(0.0, float(until) - float(now)))
    return found


def present_health() -> dict[int, State]:
    """For pages (synchronous). Models that are not named are healthy."""
    try:
        return read(sync_client().eval(READ, 1, KEY))
    except redis.RedisError:
        return {}


def forget(model: int) -> None:
    """A check has just seen it answer, or it is gone."""
    try:
        sync_client().hdel(KEY, f"{model}:failures", f"{model}:until")
    except redis.RedisError as error:
        log.warning("The broker does not answer (%s).", error)


class Health:
    """Of all models, as one event loop sees it."""

    def __init__(self) -> None:
        self._redis: Any = async_client(socket_timeout=2)
        self._states: dict[int, State] = {}
        self._read_at = float("-inf")

    @property
    def paused(self) -> set[int]:
        """Models that no call should go to first."""
        return {model for model, state in self._states.items() if state.is_open}

    async def refresh(self) -> Mapping[int, State]:
        """The state, at most a second old."""
        now = asyncio.get_running_loop().time()
        if now - self._read_at >= REFRESH_SECONDS:
            self._read_at = now
            await self._read()
        return self._states

    async def may_call(self, model: int) -> bool:
        """False while its breaker is open. After the pause true for one caller alone, until it has told the outcome."""
        state = (await self.refresh()).get(model)
        if state is None or not state.is_open:
            return True
        await self._read()  # the pause may have ended, or the probe have succeeded, in this second
        state = self._states.get(model)
        if state is None or state.pause is None:
            return True
        if state.pause > 0:
            return False
        try:
            return bool(await self._redis.set(f"{KEY}:probe:{model}", 1, nx=True, ex=PROBE_SECONDS))
        except (redis.RedisError, OSError):
            return True

    async def answered(self, model: int) -> None:
        """It works: also a refusal of the request is an answer."""
        if model in self._states:
            del self._states[model]
            await self._tell(self._redis.hdel, KEY, f"{model}:failures", f"{model}:until")
            await self._tell(self._redis.delete, f"{KEY}:probe:{model}")

    async def failed(self, model: int) -> None:
        pause = settings.MODEL_PAUSE_SECONDS
        failures = await self._tell(self._redis.eval, FAILED, 1, KEY, model, FAILURES, pause)
        if failures is not None:
            self._states[model] = State(int(failures), pause if int(failures) >= FAILURES else None)

    async def gave_up(self, model: int) -> None:
        """Nobody knows whether it works: the call was stopped, or never left. The place of a probe is free again."""
        if model in self._states and self._states[model].is_open:
            await self._tell(self._redis.delete, f"{KEY}:probe:{model}")

    async def aclose(self) -> None:
        await self._redis.aclose()

    async def _read(self) -> None:
        rows = await self._tell(self._redis.eval, READ, 1, KEY)
        self._states = {} if rows is None else read(rows)

    async def _tell(self, command: Any, *arguments: Any) -> Any:
        try:
            return await command(*arguments)
        except (redis.RedisError, OSError) as error:
            log.warning("The broker does not answer (%s); every model counts as healthy.", error)
            return None
