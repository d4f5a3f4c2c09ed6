"""Celery's worker as this product runs it. Celery's command line would do the same, and load a shell: 8 MB that no
worker needs."""

import sys

from agentapp.celery import app

RUNS_AT_ONCE = 256  # a waiting run costs a thread that does nothing


def main() -> None:
    worker = app.Worker(
        pool="threads", concurrency=RUNS_AT_ONCE, without_gossip=True, without_mingle=True, loglevel="INFO"
    )
    worker.start()
    sys.exit(worker.exitcode)


if __name__ == "__main__":
    main()
