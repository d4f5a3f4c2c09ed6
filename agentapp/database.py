"""Database work from asyncio code: a few threads, each with a connection of the pool that it keeps."""

import asyncio
import select
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import ParamSpec, TypeVar

from django.db import connection

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 4
_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="database")


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
