"""The threads of `in_thread` keep their connections as long as they hold."""

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from agentapp.database import in_thread, release_connections

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def a_pool_for_the_next_test() -> Iterator[None]:
    """What was closed from outside is nobody else's burden."""
    yield
    release_connections()
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]


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
