"""Many runs at once in one worker process: CPU and commits an iteration, memory, and what is left behind.

200 runs of 10 iterations (one model call, one tool call each) against a local endpoint that takes 100 ms. Usage:
python -m benchmarks.runs [BATCHES]; ten batches are the 2,000 runs after which nothing may have leaked.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from agentapp.embedded.testing import services
from tests.fake_model import FakeModel
from tests.product import Product, eventually

RUNS, ITERATIONS, LATENCY = 200, 10, 0.1
AIMS = {"cpu_ms": 2.5, "pss_mb": 150}
# Celery's pool grows to 256 threads when runs pile up; connections of the model's pool come and go.
MOST = {"threads": 256 + 24, "files": 300}

ENQUEUE = f"""
from datetime import timedelta
from django.utils import timezone
from accounts.models import User
from conversations.lifecycle import enqueue
from conversations.models import Conversation, Message, Run
from tools_admin.services import default_agent
user, agent, now = User.objects.first(), default_agent(), timezone.now()
talks = Conversation.objects.bulk_create([Conversation(user=user, agent=agent) for _ in range({RUNS})])
texts = Message.objects.bulk_create([Message(conversation=t, role="user", content="Count") for t in talks])
runs = Run.objects.bulk_create([
    Run(conversation=m.conversation, user=user, agent=agent, message=m, enqueued_at=now,
        deadline=now + timedelta(days=1))
    for m in texts
])
for run in runs:
    enqueue(run.id)
"""


def count_with_the_tool(request: dict[str, Any]) -> dict[str, Any]:
    done = sum(message["role"] == "tool" for message in request["messages"])
    if request.get("tools") and done < ITERATIONS:
        return {"calls": [{"name": "calculator", "arguments": {"expression": f"{done} + 1"}}]}
    return {"text": "I have counted to ten, one step after the other. " * 20}


def main(batches: int) -> int:
    with tempfile.TemporaryDirectory() as folder, services() as environment:
        model = FakeModel(count_with_the_tool).start()
        product = Product(environment, Path(folder), model)
        product.environment |= {"MAX_RUNNING_RUNS": "0"}  # all of one person
        product.environment |= {"QUEUED_AGE_SECONDS": "60", "RUN_LEASE_SECONDS": "9", "RUN_HEARTBEAT_SECONDS": "3"}
        try:
            product.start()
            model.brain, model.token_delay = count_with_the_tool, 0.0
            model.latency = LATENCY
            worker = product.processes["worker"].pid
            figures = [_batch(product, worker) for _ in range(batches)]
        finally:
            product.stop()
            model.end()
    for number, figure in enumerate(figures, 1):
        print(f"batch {number}: " + "  ".join(f"{name} {value:.2f}" for name, value in figure.items()))
    best = min(figure["cpu_ms"] for figure in figures)
    print(f"CPU of the worker: {best:.2f} ms an iteration at best (aim: {AIMS['cpu_ms']})")
    print(f"memory of the worker: {figures[-1]['pss_mb']:.0f} MB PSS (aim: {AIMS['pss_mb']})")
    leaks = [name for name, most in MOST.items() if figures[-1][name] > most]
    print(f"left behind after {batches * RUNS:,} runs: {' and '.join(leaks) or 'no threads, no files'}")
    good = best <= AIMS["cpu_ms"] and figures[-1]["pss_mb"] <= AIMS["pss_mb"] and not leaks
    return 0 if good else 1


def _batch(product: Product, worker: int) -> dict[str, float]:
    before, (commits, rows), began = _cpu(worker), _writes(product), time.monotonic()
    product.manage("shell", "--no-imports", "-c", ENQUEUE)
    open_runs = "SELECT count(*) FROM conversations_run WHERE ended_at IS NULL"
    eventually(lambda: product.sql(open_runs) == [(0,)], "all runs have ended", 180)
    tools = "SELECT count(*) FROM conversations_call WHERE kind = 'tool' AND state = 'succeeded'"
    failed = product.sql("SELECT count(*) FROM conversations_run WHERE status <> 'completed'")[0][0]
    iterations = RUNS * ITERATIONS
    total = product.sql(tools)[0][0]
    assert failed == 0, f"{failed} runs did not complete"
    assert total % iterations == 0, "an iteration is missing or doubled"
    commits_now, rows_now = _writes(product)
    return {
        "cpu_ms": (_cpu(worker) - before) / iterations * 1000,
        "commits": (commits_now - commits) / iterations,
        "rows": (rows_now - rows) / iterations,
        "seconds": time.monotonic() - began,
        "pss_mb": _pss(worker),
        "threads": len(os.listdir(f"/proc/{worker}/task")),  # noqa: PTH208
        "files": len(os.listdir(f"/proc/{worker}/fd")),  # noqa: PTH208
    }


def _cpu(pid: int) -> float:
    """Seconds of user and system time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _writes(product: Product) -> tuple[int, int]:
    """Commits, and rows inserted or updated, so far."""
    with psycopg.connect(product.database_url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        query = (
            "SELECT xact_commit, tup_inserted + tup_updated FROM pg_stat_database WHERE datname = current_database()"
        )
        row = connection.execute(query).fetchone()
        return (int(row[0]), int(row[1])) if row else (0, 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2))
