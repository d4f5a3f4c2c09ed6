"""Who has a connection open to this web process; whoever may no longer come in is shown out within seconds."""

import asyncio
import logging
from collections.abc import Callable

from django.db import DatabaseError

from accounts import sign_ins
from accounts.sign_ins import SignIn
from agentapp.database import in_thread

log = logging.getLogger(__name__)

CHECK_SECONDS = 5.0

ShowOut = Callable[[], None]


class Visitors:
    def __init__(self) -> None:
        self._here: dict[SignIn, list[ShowOut]] = {}
        self._task = asyncio.create_task(self._check_for_ever(), name="visitors")

    def add(self, sign_in: SignIn, show_out: ShowOut) -> None:
        """`show_out` is called once, when the sign-in no longer holds."""
        self._here.setdefault(sign_in, []).append(show_out)

    def discard(self, sign_in: SignIn, show_out: ShowOut) -> None:
        here = self._here.get(sign_in, [])
        if show_out in here:
            here.remove(show_out)
        if not here:
            self._here.pop(sign_in, None)

    async def _check_for_ever(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if not self._here:
                continue
            try:
                ended = await in_thread(sign_ins.ended, list(self._here))
            except DatabaseError as error:
                log.warning("The database does not answer: %s", str(error).strip()[:200])
                continue
            for sign_in in ended:
                for show_out in self._here.pop(sign_in, []):
                    show_out()


_visitors: dict[int, Visitors] = {}


def process_visitors() -> Visitors:
    """The visitors of this event loop (a web process has one)."""
    loop = id(asyncio.get_running_loop())
    if loop not in _visitors:
        _visitors[loop] = Visitors()
    return _visitors[loop]
