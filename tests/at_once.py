"""The same thing done by several threads at the same moment, each with a database connection of its own."""

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection


def at_once(count: int, act: Callable[[int], Any]) -> list[Any]:
    """What each of `act(0)`, `act(1)`, … returned or raised, in that order. The test needs real transactions."""
    together = threading.Barrier(count)
    outcomes: list[Any] = [None] * count

    def run(number: int) -> None:
        together.wait()
        try:
            outcomes[number] = act(number)
        except Exception as error:  # noqa: BLE001 (it is the outcome)
            outcomes[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
