"""Celery's worker as this product runs it. Celery's command line would do the same, and load a shell: 8 MB that no
worker needs."""

import sys

from agentapp.celery import app

THREADS = 64  # for checks of endpoints, webhooks and documents; runs only pass through on their way to the loop


def main() -> None:
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
