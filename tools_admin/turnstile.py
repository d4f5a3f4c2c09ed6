"""How many calls go to a provider at once and in a minute: a limit of all workers together, in Redis or Valkey.

Whoever comes too early waits, and may be cancelled while it does. A place belongs to its holder for as long as it says
so: after a crash it is free within half a minute. Without the broker nothing is limited.
"""

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

import redis

from agentapp.engine import ModelPaused
from agentapp.valkey import async_client
from tools_admin.models import Provider

log = logging.getLogger(__name__)

HOLD_SECONDS, RENEW_SECONDS = 30, 10
SHORTEST_WAIT, LONGEST_WAIT = 0.02, 0.5

# KEYS: places (a sorted set: holder → when its hold ends), calls of the last minute (holder → when).
# ARGV: holder, places or 0, calls a minute or 0, seconds of a hold. Gives how many milliseconds to wait: 0 is inside,
# -1 is until a place is free.
ENTER = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local places, rate = tonumber(ARGV[2]), tonumber(ARGV[3])
if places > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  if redis.call('ZCARD', KEYS[1]) >= places then return -1 end
end
if rate > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - 60000)
  if redis.call('ZCARD', KEYS[2]) >= rate then
    return math.max(1, redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] + 60000 - now)
  end
  redis.call('ZADD', KEYS[2], now, ARGV[1])
  redis.call('PEXPIRE', KEYS[2], 61000)
end
if places > 0 then
  redis.call('ZADD', KEYS[1], now + ARGV[4] * 1000, ARGV[1])
  redis.call('PEXPIRE', KEYS[1], math.floor(ARGV[4] * 2000))
end
return 0
"""
RENEW = """
local time = redis.call('TIME')
redis.call('PEXPIRE', KEYS[1], math.floor(ARGV[2] * 2000))
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZADD', KEYS[1], 'XX', now + ARGV[2] * 1000, ARGV[1])
"""


class Turnstile:
    """Of all providers, for one event loop. Waiting calls of a process go in in the order in which they came."""

    def __init__(self) -> None:
        self._redis: Any = async_client(socket_timeout=2)
        self._queues: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def enter(self, provider: Provider) -> AsyncIterator[None]:
        """One call. Raises `ModelPaused` when there is no place for it within the provider's time-out."""
        if not (provider.max_concurrent or provider.requests_per_minute):
            yield
            return
        holder = uuid4().hex
        keys = f"provider:{provider.pk}:places", f"provider:{provider.pk}:calls"
        renewing = None
        try:
            await self._wait(provider, keys, holder)
            if provider.max_concurrent:
                renewing = asyncio.create_task(self._renew(keys[0], holder))
            yield
        finally:
            if renewing is not None:
                renewing.cancel()
            if provider.max_concurrent:  # also when it was cancelled while it waited: it may have got in
                await asyncio.shield(self._leave(keys[0], holder))

    async def aclose(self) -> None:
        await self._redis.aclose()

    async def _wait(self, provider: Provider, keys: tuple[str, str], holder: str) -> None:
        limits = provider.max_concurrent or 0, provider.requests_per_minute or 0
        try:
            async with asyncio.timeout(provider.timeout), self._queues[provider.pk]:
                pause = SHORTEST_WAIT
                while wait := await self._enter(keys, holder, *limits):
                    pause = min(pause * 1.5, LONGEST_WAIT)
                    await asyncio.sleep(random.uniform(0.5, 1) * pause if wait < 0 else wait / 1_000)  # noqa: S311
        except TimeoutError:
            raise ModelPaused(f"{provider}: no place within {provider.timeout:g} s") from None

    async def _enter(self, keys: tuple[str, str], holder: str, places: int, rate: int) -> int:
        try:
            return int(await self._redis.eval(ENTER, 2, *keys, holder, places, rate, HOLD_SECONDS))
        except (redis.RedisError, OSError) as error:
            log.warning("The broker does not answer (%s); calls to models are not limited.", error)
            return 0

    async def _renew(self, key: str, holder: str) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            with suppress(redis.RedisError, OSError):
                await self._redis.eval(RENEW, 1, key, holder, HOLD_SECONDS)

    async def _leave(self, key: str, holder: str) -> None:
        with suppress(redis.RedisError, OSError):
            await self._redis.zrem(key, holder)
