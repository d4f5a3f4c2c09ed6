"""The threads of `in_thread` keep their connections as long as they hold; what every run asks is planned once."""

import asyncio
from threading import Barrier

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction

from agentapp.database import THREADS, in_thread, prepared_cursor, release_connections

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


def _ask(number: int) -> tuple[int, int]:
    """The number, and how many statements of its kind the connection has planned."""
    with prepared_cursor() as cursor:
        cursor.execute("SELECT %s::int /* asked often */", [number])
        [answer] = cursor.fetchone()
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", ["%/* asked often */"])
        return answer, cursor.fetchone()[0]


def test_a_statement_is_planned_once_a_connection_whatever_its_parameters() -> None:
    assert [_ask(number) for number in (1, 2, 3)] == [(1, 1), (2, 1), (3, 1)]
    connection.close()
    assert _ask(4) == (4, 1)


def test_planned_statements_outlive_a_transaction_that_failed() -> None:
    assert _ask(1)[0] == 1
    with pytest.raises(IntegrityError), transaction.atomic(), prepared_cursor() as cursor:  # as Django names it
        cursor.execute("INSERT INTO auth_group (name) VALUES (%s), (%s)", ["Analysts", "Analysts"])
    assert _ask(2) == (2, 1)


async def test_a_connection_that_broke_under_a_planned_statement_is_replaced() -> None:
    release_connections()
    _close_from_outside({await in_thread(_session)})
    assert await in_thread(_ask, 5) == (5, 1)
