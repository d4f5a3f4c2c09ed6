"""Database work from asyncio code: a few threads, each with a connection of the pool that it keeps. And statements of
which each run needs a dozen: PostgreSQL takes longer to plan them than to carry them out, so it plans them once."""

import asyncio
import select
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, ParamSpec, TypeVar

import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 4
NEVER_BY_ITSELF = 1_000_000_000  # how often any other statement must come to be prepared, too
_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="database")


class _PreparedCursor(psycopg.Cursor[Any]):
    def execute(self, query: Any, params: Any = None, **options: Any) -> "_PreparedCursor":
        return super().execute(query, params, prepare=True)


def prepared_cursor() -> CursorWrapper:
    """Like `connection.cursor()`, for statements whose text is always the same: each is planned once a connection.

    Parameters are sent apart from the text, so PostgreSQL must be able to tell their types: cast where it cannot.
    """
    if connection.queries_logged:  # the log shows statements with their parameters
        return connection.cursor()
    connection.ensure_connection()
    line = connection.connection
    line.prepare_threshold = NEVER_BY_ITSELF
    cursor: Any = _PreparedCursor(line)
    return connection.make_cursor(cursor)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs a synchronous function that uses the ORM; four run at once in a process, others wait.

    A connection that broke is not used again. One that the server closed meanwhile is noticed before the work.
    """

    def call() -> T:
        if _was_closed():
            # So were those that wait in the pool, most likely: it would try them one by one, with a pause after each.
            connection.pool.drain()  # type: ignore[attr-defined]
            connection.close()
        try:
            return work(*args, **kwargs)
        finally:
            if connection.errors_occurred:
                connection.close()

    return await asyncio.get_running_loop().run_in_executor(_threads, call)


def release_connections() -> None:
    """Gives the threads' connections back, so that nothing holds on to the database: for the end of tests."""
    together = Barrier(THREADS)

    def release() -> None:
        together.wait()
        connection.close()

    for future in [_threads.submit(release) for _ in range(THREADS)]:
        future.result()


def _was_closed() -> bool:
    """On an idle connection only the server's farewell is there to be read."""
    if connection.connection is None:
        return False
    if connection.connection.closed:
        return True
    idle = select.poll()
    idle.register(connection.connection.fileno(), select.POLLIN)
    return bool(idle.poll(0))
