"""The threads of `in_thread` keep their connections as long as they hold."""

import asyncio
from threading import Barrier

import psycopg
import pytest
from django.db import connection

from agentapp.database import THREADS, in_thread, release_connections

pytestmark = pytest.mark.django_db(transaction=True)


def _session() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def _close_from_outside(sessions: set[int]) -> None:
    parameters = connection.get_connection_params()
    keep = {name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if parameters.get(name)}
    with psycopg.connect(autocommit=True, **keep) as other:
        other.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s::int[]) pid", [list(sessions)])


async def test_connections_that_the_server_closed_are_replaced_before_they_are_used() -> None:
    release_connections()
    before = {await in_thread(_session) for _ in range(8)}
    assert len(before) <= 4
    _close_from_outside(before)
    after = {await in_thread(_session) for _ in range(8)}
    assert not before & after


def _wait_in_the_pool(count: int) -> set[int]:
    pool = connection.pool  # type: ignore[attr-defined]
    taken = [pool.getconn() for _ in range(count)]
    for one in taken:
        pool.putconn(one)
    return {one.info.backend_pid for one in taken}


async def test_those_that_wait_in_the_pool_are_replaced_all_at_once() -> None:
    together = Barrier(THREADS)

    def of_each_thread() -> int:
        together.wait()
        return _session()

    kept = await asyncio.gather(*(in_thread(of_each_thread) for _ in range(THREADS)))
    closed = {*kept, *await asyncio.to_thread(_wait_in_the_pool, 4)}
    _close_from_outside(closed)
    assert await in_thread(_session) not in closed
