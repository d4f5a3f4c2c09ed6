"""How often a person, or a program with their key, may do something: counted in Valkey for all processes together."""

import logging
import math
import time
from functools import cache

import redis
from django.conf import settings
from limits import parse
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter

from accounts.errors import TooOften
from accounts.models import User
from agentapp.valkey import sync_client

log = logging.getLogger(__name__)


@cache
def _limiter() -> MovingWindowRateLimiter:
    pool = sync_client().connection_pool
    return MovingWindowRateLimiter(RedisStorage("redis://", connection_pool=pool, key_prefix="rate"))


def count_request(user: User) -> dict[str, str]:
    """Gives the headers that tell a program how much is left of its limit. Raises `TooOften`."""
    _count("requests", settings.RATE_REQUESTS, user)
    return request_headers(user)


def request_headers(user: User) -> dict[str, str]:
    """As the IETF's draft names them; none without a limit, or with Valkey away."""
    if not settings.RATE_REQUESTS:
        return {}
    limit = parse(settings.RATE_REQUESTS)
    try:
        stats = _limiter().get_window_stats(limit, "requests", f"user-{user.pk}")
    except (redis.RedisError, OSError):
        return {}
    return {
        "RateLimit-Limit": str(limit.amount),
        "RateLimit-Remaining": str(stats.remaining),
        "RateLimit-Reset": str(max(0, math.ceil(stats.reset_time - time.time()))),
        "RateLimit-Policy": f"{limit.amount};w={limit.get_expiry()}",
    }


def count_message(user: User) -> None:
    """Of everything that makes an agent work. Raises `TooOften`."""
    _count("messages", settings.RATE_MESSAGES, user)


def _count(what: str, rate: str, user: User) -> None:
    """What is refused counts for nothing. With Valkey away nobody is held up."""
    if not rate:
        return
    limit = parse(rate)
    who = [f"user-{user.pk}", *([f"key-{user.by_key_id}"] if user.by_key_id else [])]
    try:
        for name in who:
            if not _limiter().hit(limit, what, name):
                wait = _limiter().get_window_stats(limit, what, name).reset_time - time.time()
                raise TooOften(max(1, math.ceil(wait)))
    except (redis.RedisError, OSError) as error:
        log.warning("The live channel does not answer (%s); %s are not counted.", error, what)
