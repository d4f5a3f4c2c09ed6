"""Database work of a run that outlives an outage of the database."""

import asyncio
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError

from agentapp.database import in_thread

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

DATABASE_PATIENCE_SECONDS, DATABASE_RETRY_SECONDS = 60.0, 0.5


async def patiently(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Database work that waits for the database, as records do. Whether it still counts is for the epoch to say."""
    loop = asyncio.get_running_loop()
    until = loop.time() + DATABASE_PATIENCE_SECONDS
    while True:
        try:
            return await in_thread(work, *args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            if loop.time() > until:
                raise
            log.warning("The database does not answer (%s); the run waits.", str(error).strip()[:200])
        await asyncio.sleep(DATABASE_RETRY_SECONDS)
