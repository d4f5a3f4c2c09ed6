"""Connections to Redis or Valkey."""

from typing import Any

import redis
import redis.asyncio
from django.conf import settings
from redis.connection import HiredisRespSerializer

THREADS = 1_000  # that may use the synchronous client at once; redis-py's own bound of 100 is below a worker's


def async_client(**options: Any) -> redis.asyncio.Redis:
    """A client for this event loop. Times out quickly: what it serves must never hold up a run."""
    client = redis.asyncio.from_url(settings.REDIS_URL, **{"socket_connect_timeout": 2, "protocol": 2, **options})
    pool = client.connection_pool
    pool.connection_class = type("PackingConnection", (_Packing, pool.connection_class), {})
    return client


class _Packing:
    """Commands are put together in C, as redis-py itself does for the synchronous client alone: those of a worker have
    hundreds of parts."""

    def pack_command(self, *parts: Any) -> list[bytes]:
        packed: list[bytes] = HiredisRespSerializer().pack(*parts)
        return packed


_sync: list[redis.Redis] = []


def sync_client() -> redis.Redis:
    """The process's client for synchronous code."""
    if not _sync:
        options = {"socket_timeout": 2, "socket_connect_timeout": 2, "protocol": 2, "max_connections": THREADS}
        _sync.append(redis.from_url(settings.REDIS_URL, **options))
    return _sync[0]
