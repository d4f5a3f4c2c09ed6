"""How often somebody may do something: counted in Valkey for all processes together, in one call.

A person's requests count together, whatever keys they come by. Whoever is nobody (a wrong key, a key from where it may
not be used) counts by address.
"""

import ipaddress
import logging
import math
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

import redis
from django.conf import settings
from limits import RateLimitItem, parse

from accounts.errors import TooOften
from accounts.models import User
from agentapp.valkey import sync_client

log = logging.getLogger(__name__)

STRANGERS = 1_024  # counts for all addresses together: whoever has many of them fills no memory

# A window that moves: a list of when something was counted, in milliseconds, oldest first. What is refused counts for
# nothing. Gives whether it was counted, how many are in the window, and the milliseconds until the oldest leaves it.
_COUNT = """
local key, limit, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = tonumber(redis.call('LINDEX', key, 0))
while oldest and oldest <= now - window do
    redis.call('LPOP', key)
    oldest = tonumber(redis.call('LINDEX', key, 0))
end
local counted, used = 0, redis.call('LLEN', key)
if used < limit then
    counted, used = 1, redis.call('RPUSH', key, now)
    redis.call('PEXPIRE', key, window)
end
return {counted, used, (oldest or now) + window - now}
"""


@dataclass(frozen=True, slots=True)
class Count:
    """`wait` is how many seconds a refused one must wait; `headers` tell a program what is left."""

    refused: bool
    wait: int
    headers: dict[str, str]


UNCOUNTED = Count(False, 0, {})
_limit = cache(parse)


@cache
def _script() -> Any:
    return sync_client().register_script(_COUNT)


def count_request(user: User) -> Count:
    return _count("requests", settings.RATE_REQUESTS, f"user-{user.pk}")


def count_stranger(address: str) -> Count:
    """Of requests that nobody is behind. The networks that one customer gets (IPv6: /64) are one address."""
    return _count("strangers", settings.RATE_REQUESTS, str(crc32(_network(address).encode()) % STRANGERS))


def count_message(user: User) -> None:
    """Of everything that makes an agent work. Raises `TooOften`."""
    count = _count("messages", settings.RATE_MESSAGES, f"user-{user.pk}")
    if count.refused:
        raise TooOften(count.wait)


def _network(address: str) -> str:
    try:
        return str(ipaddress.ip_network(f"{address}/64", strict=False)) if ":" in address else address
    except ValueError:
        return ""


def _count(what: str, rate: str, who: str) -> Count:
    """With Valkey away nobody is held up."""
    if not rate:
        return UNCOUNTED
    limit: RateLimitItem = _limit(rate)
    window = limit.get_expiry()
    try:
        counted, used, left = _script()(keys=[f"rate:{what}:{who}"], args=[limit.amount, window * 1_000])
    except (redis.RedisError, OSError) as error:
        log.warning("The live channel does not answer (%s); %s are not counted.", error, what)
        return UNCOUNTED
    wait = max(1, math.ceil(left / 1_000))
    headers = {
        "RateLimit-Limit": str(limit.amount),
        "RateLimit-Remaining": str(max(0, limit.amount - used)),
        "RateLimit-Reset": str(wait),
        "RateLimit-Policy": f"{limit.amount};w={window}",
    }
    return Count(not counted, wait, headers)
