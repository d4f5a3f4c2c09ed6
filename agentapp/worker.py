"""Celery's worker as this product runs it. Celery's command line would do the same, and load a shell: 8 MB that no
worker needs."""

import ctypes
import sys

from agentapp.celery import app

THREADS = 64  # for checks of endpoints, webhooks and documents; runs only pass through on their way to the loop
M_ARENA_MAX = -8  # of glibc's malloc.h


def main() -> None:
    # Else each thread allocates in a heap of its own, and these grow from burst to burst, by 8 MB in 2,000 runs.
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_ARENA_MAX, 1)
    worker = app.Worker(
        pool="threads",
        concurrency=THREADS,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="INFO",
    )
    worker.start()
    sys.exit(worker.exitcode)


if __name__ == "__main__":
    main()
