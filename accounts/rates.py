"""How often somebody may do something: counted in Valkey for all processes together.

A person's requests count together, whatever keys they come by. Whoever is nobody (a wrong key, a key from where it may
not be used) counts by address.
"""

import ipaddress
import logging
import math
import time
from dataclasses import dataclass
from functools import cache
from zlib import crc32

import redis
from django.conf import settings
from limits import RateLimitItem, parse
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter

from accounts.errors import TooOften
from accounts.models import User
from agentapp.valkey import sync_client

log = logging.getLogger(__name__)

STRANGERS = 1_024  # counts for all addresses together: whoever has many of them fills no memory


@dataclass(frozen=True, slots=True)
class Count:
    """`wait` is how many seconds a refused one must wait; `headers` tell a program what is left."""

    refused: bool
    wait: int
    headers: dict[str, str]


UNCOUNTED = Count(False, 0, {})
_limit = cache(parse)


@cache
def _limiter() -> MovingWindowRateLimiter:
    pool = sync_client().connection_pool
    return MovingWindowRateLimiter(RedisStorage("redis://", connection_pool=pool, key_prefix="rate"))


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
        counted = _limiter().hit(limit, what, who)
        reset_at, left = _limiter().get_window_stats(limit, what, who)
    except (redis.RedisError, OSError) as error:
        log.warning("The live channel does not answer (%s); %s are not counted.", error, what)
        return UNCOUNTED
    wait = max(1, math.ceil(reset_at - time.time()))
    headers = {
        "RateLimit-Limit": str(limit.amount),
        "RateLimit-Remaining": str(left),
        "RateLimit-Reset": str(wait),
        "RateLimit-Policy": f"{limit.amount};w={window}",
    }
    return Count(not counted, wait, headers)
